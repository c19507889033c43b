package silicon

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// ailment is what a fault changes of a NIC, and how what it hits is counted.
type ailment struct {
	change func(*rnic.Faults) // may be nil
	undo   func(*rnic.Faults)
	count  func(*NIC) uint64 // rises with each hit
	kill   bool              // queue pairs go to the error state, which nothing heals
	link   rnic.PCIeLink     // what the PCIe link is trained to; zero: it stays

	// For NICs in another process.
	dcqcn  dcqcn.Params
	cnps   bool
	source roce.Addr
}

// ailing is a fault of a NIC.
type ailing struct {
	in   *Injector
	spec faults.Spec
	ref  topo.PortRef
	port *Port
	what ailment
	slot int // the NIC's number on its host's PCIe

	qps    []uint32 // that are killed; nil: all
	killed uint64
	before uint64
	whole  rnic.PCIeLink
	on     bool
	err    error // of healing
}

// inNICs is plans for faults in NICs.
func (in *Injector) inNICs(spec *faults.Spec) (out []effect, err error) {
	targets, err := faults.Aim(spec, faults.Scope{Topology: in.plan.Topology, Plan: in.plan, Seed: in.seed})
	if err != nil {
		return nil, named(spec.Name, "", err)
	}
	for _, t := range targets {
		m := in.settings.NICs.Of(t.Port.Node)
		what, err := in.ailmentAt(spec, t.Port, &m)
		if err != nil {
			return nil, named(spec.Name, "", err)
		}
		e := &ailing{in: in, spec: *spec, ref: t.Port, port: in.port(t.Port), what: what}
		e.slot = slices.IndexFunc(in.plan.Ports(t.Port.Node), func(p topo.PlanPort) bool { return p.Ref == t.Port })
		if m.Process {
			out = append(out, ailingAfar{e})
			continue
		}
		out = append(out, e)
	}
	return out, nil
}

// ailmentAt is a fault as a NIC with settings has it.
func (in *Injector) ailmentAt(s *faults.Spec, at topo.PortRef, m *fabric.NICModel) (ailment, error) {
	switch s.Kind {
	case faults.DCQCNParams:
		return in.retuned(s, at, m)
	case faults.WrongGID:
		return in.astray(s, at)
	}
	return nicAilment(s, in.plan.Link(at).Rate)
}

// nicAilment is a fault as a NIC on a link of a rate has it.
func nicAilment(s *faults.Spec, rate topo.Rate) (ailment, error) {
	arrived := func(n *NIC) uint64 { return n.Counters().RxPackets }
	muted := func(n *NIC) uint64 { return n.FaultCounters().CNPsLeftOut }
	switch s.Kind {
	case faults.PFCStorm:
		storm, err := stormOf(s, rate)
		if err != nil {
			return ailment{}, err
		}
		bits := storm.Priorities
		return ailment{
			change: func(f *rnic.Faults) { f.Storm = storm }, undo: func(f *rnic.Faults) { f.Storm = rnic.Storm{} },
			count: func(n *NIC) (most uint64) { // a frame speaks of all of them
				c := n.Counters()
				for i := range c.Priority {
					if bits&(1<<i) != 0 {
						most = max(most, c.Priority[i].TxPause)
					}
				}
				return most
			},
		}, nil
	case faults.SlowDMA:
		return ailment{change: func(f *rnic.Faults) { f.DMA = uint64(s.Rate) }, undo: func(f *rnic.Faults) { f.DMA = 0 }, count: arrived}, nil
	case faults.PCIeDowngrade:
		return ailment{link: rnic.PCIeLink{Gen: s.PCIe.Gen, Width: s.PCIe.Width}, count: arrived}, nil
	case faults.MTTThrash:
		t := rnic.Translate{Entries: s.Entries, Page: 4096, Miss: s.Delay}
		if t.Miss == 0 {
			t.Miss = defaultMiss
		}
		return ailment{change: func(f *rnic.Faults) { f.MTT = t }, undo: func(f *rnic.Faults) { f.MTT = rnic.Translate{} },
			count: func(n *NIC) uint64 { return n.Counters().MTTMisses }}, nil
	case faults.NICReset:
		if s.Down != 0 {
			return ailment{}, strict.At("down", "a software NIC's port stays up when it is reset (for links there is down)")
		}
		return ailment{kill: true}, nil
	case faults.QPKill:
		return ailment{kill: true}, nil
	case faults.AckDelay:
		return ailment{change: func(f *rnic.Faults) { f.AckDelay = s.Delay }, undo: func(f *rnic.Faults) { f.AckDelay = 0 },
			count: func(n *NIC) uint64 { return n.FaultCounters().AcksDelayed }}, nil
	case faults.AckCoalesce:
		return ailment{change: func(f *rnic.Faults) { f.AckEvery, f.AckWait = s.AckEvery, s.Delay }, undo: func(f *rnic.Faults) { f.AckEvery, f.AckWait = 0, 0 },
			count: func(n *NIC) uint64 { return n.FaultCounters().AcksLeftOut }}, nil
	case faults.CNPOff:
		return ailment{change: func(f *rnic.Faults) { f.MuteCNP = true }, undo: func(f *rnic.Faults) { f.MuteCNP = false }, count: muted}, nil
	case faults.CNPCap:
		gap := time.Duration(float64(time.Second) / float64(s.Frequency))
		return ailment{change: func(f *rnic.Faults) { f.CNPGap = max(gap, 1) }, undo: func(f *rnic.Faults) { f.CNPGap = 0 }, count: muted}, nil
	}
	return ailment{}, strict.At("kind", "%w", lacks(s.Kind))
}

// defaultMiss is what a translation takes that has to be fetched over PCIe, where neither fault nor profile says.
const defaultMiss = time.Microsecond

func (e *ailing) possible() error { return nil }
func (e *ailing) allowed() error  { return nil } // faults.Together says
func (e *ailing) release()        {}
func (e *ailing) ports() []*Port  { return []*Port{e.port} }

// claim finds the queue pairs that are meant, on the control loop.
func (e *ailing) claim() {
	if !e.what.kill || e.spec.Workload == "" {
		return
	}
	e.qps = []uint32{}
	for _, c := range e.in.connections {
		if c.Workload != e.spec.Workload || !e.spec.Flows.Has(c.Flow) {
			continue
		}
		if c.From.Port == e.ref {
			e.qps = append(e.qps, c.From.QPN)
		}
		if c.To.Port == e.ref {
			e.qps = append(e.qps, c.To.QPN)
		}
	}
}

func (e *ailing) nic(p *Port) (*NIC, error) {
	if n, ok := p.end.(*NIC); ok {
		return n, nil
	}
	return nil, fmt.Errorf("%s: its NIC is not in this process", e.ref)
}

func (e *ailing) apply(p *Port) error {
	n, err := e.nic(p)
	if err != nil {
		return err
	}
	if e.what.count != nil {
		e.before = e.what.count(n)
	}
	switch {
	case e.what.kill:
		e.killed += uint64(n.FailQPs(func(qpn uint32) bool { return e.qps == nil || slices.Contains(e.qps, qpn) }))
	case e.what.change != nil:
		f := n.Faults()
		e.what.change(&f)
		err = n.SetFaults(f)
	default:
		if e.whole, err = n.PCIe().Trained(rnic.PCIeNIC, e.slot); err == nil {
			err = n.PCIe().Retrain(rnic.PCIeNIC, e.slot, e.what.link)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", e.ref, err)
	}
	e.on = true
	return nil
}

func (e *ailing) verify(p *Port) error {
	n, err := e.nic(p)
	if err == nil && !e.on {
		err = errors.New("it is not in force")
	}
	if err == nil {
		err = e.agrees(n, e.what.change, e.what.link)
	}
	return err
}

// agrees reads back from the NIC whether it is as a change leaves it.
func (e *ailing) agrees(n *NIC, change func(*rnic.Faults), link rnic.PCIeLink) error {
	if change != nil {
		got := n.Faults()
		want := got
		if change(&want); got != want {
			return fmt.Errorf("%s: its faults are %+v, not %+v", e.ref, got, want)
		}
	}
	if e.what.link != (rnic.PCIeLink{}) {
		if got, err := n.PCIe().Trained(rnic.PCIeNIC, e.slot); err != nil || got != link {
			return errors.Join(err, fmt.Errorf("%s: its PCIe link is trained to %v, not %v", e.ref, got, link))
		}
	}
	return nil
}

func (e *ailing) hits(p *Port) uint64 {
	n, err := e.nic(p)
	switch {
	case err != nil || !e.on:
		return 0
	case e.what.kill:
		return e.killed
	}
	return e.what.count(n) - e.before
}

func (e *ailing) heal(p *Port) {
	n, err := e.nic(p)
	if err != nil || !e.on {
		return
	}
	e.on = false
	switch {
	case e.what.undo != nil:
		f := n.Faults()
		e.what.undo(&f)
		e.err = n.SetFaults(f)
	case e.what.link != (rnic.PCIeLink{}):
		e.err = n.PCIe().Retrain(rnic.PCIeNIC, e.slot, e.whole)
	}
}

func (e *ailing) clean(p *Port) error {
	n, err := e.nic(p)
	if err != nil {
		return err
	}
	return errors.Join(e.err, e.agrees(n, e.what.undo, e.whole))
}
