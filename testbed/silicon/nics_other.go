package silicon

import (
	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// retuned is a NIC whose DCQCN has other parameters than the scenario gave it.
func (in *Injector) retuned(s *faults.Spec, at topo.PortRef, m *fabric.NICModel) (ailment, error) {
	profile, err := profileOf(m, 0)
	if err != nil {
		return ailment{}, err
	}
	if profile.DCQCN == nil {
		return ailment{}, strict.At("dcqcn", "%s has no DCQCN (nics.dcqcn gives it)", at)
	}
	p, cnps, err := Retuned(s, *profile.DCQCN, at, in.plan.Link(at), in.pace)
	if err != nil {
		return ailment{}, err
	}
	return retunedTo(p, cnps), nil
}

func retunedTo(p dcqcn.Params, cnps bool) ailment {
	return ailment{
		dcqcn: p, cnps: cnps,
		change: func(f *rnic.Faults) { f.DCQCN = p }, undo: func(f *rnic.Faults) { f.DCQCN = dcqcn.Params{} },
		count: func(n *NIC) uint64 {
			hits := n.FaultCounters().RateChanges
			if cnps {
				hits += n.Counters().CNPSent
			}
			return hits
		},
	}
}

// astray is a NIC whose packets come from an address that it doesn't have. Peers take them for strays.
func (in *Injector) astray(s *faults.Spec, at topo.PortRef) (ailment, error) {
	addr, err := s.WrongAddress(in.plan, at)
	if err != nil {
		return ailment{}, err
	}
	return sendsFrom(roce.AddrFrom(addr)), nil
}

func sendsFrom(source roce.Addr) ailment {
	return ailment{
		source: source,
		change: func(f *rnic.Faults) { f.Source = source }, undo: func(f *rnic.Faults) { f.Source = roce.Addr{} },
		count: func(n *NIC) uint64 { return n.FaultCounters().Astray },
	}
}
