package silicon

import (
	"reflect"

	"github.com/rocebed/rocebed/datapath/asic"
	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// What faults change of switches and NICs, for a backend that keeps these settings and has them obeyed by other means.

// Knob is what a fault changes of a switch's settings.
type Knob struct{ over overlay }

// KnobOf is a fault's, at some of the switch's ports.
func KnobOf(s *faults.Spec, ports []int) (*Knob, error) {
	k, err := switchKnob(s)
	if err != nil {
		return nil, err
	}
	return &Knob{overlay{name: s.Name, ports: ports, knob: k}}, nil
}

// Turned are settings with knobs turned, in their order.
func Turned(base asic.Settings, knobs ...*Knob) asic.Settings {
	all := make([]*overlay, len(knobs))
	for i, k := range knobs {
		all[i] = &k.over
	}
	return with(base, all...)
}

// Changes says whether a knob changes anything of settings.
func (k *Knob) Changes(base asic.Settings) bool {
	return !reflect.DeepEqual(with(base), with(base, &k.over))
}

// Counts says whether a knob's hits are counted at ports. Where they are not, the switch is the hit.
func (k *Knob) Counts() bool { return k.over.knob.count != nil }

// Count is what rises with each hit, and Level the hits that there are now, at all ports that are struck.
func (k *Knob) Count(stats func(port int) asic.PortStats) (count, level uint64) {
	for _, i := range k.over.ports {
		st := stats(i)
		if k.over.knob.count != nil {
			count += k.over.knob.count(&st)
		}
		if k.over.knob.level != nil {
			level += k.over.knob.level(&st)
		}
	}
	return count, level
}

// StormOf is a PFC storm on a link of a rate.
func StormOf(s *faults.Spec, rate topo.Rate) (rnic.Storm, error) { return stormOf(s, rate) }

// Retuned are a NIC's parameters of DCQCN with a fault's in their place, as far as LeastRate lets them. cnps says whether CNPs are sent by others too.
func Retuned(s *faults.Spec, base dcqcn.Params, at topo.PortRef, l *topo.Link, d loop.Dilation) (p dcqcn.Params, cnps bool, err error) {
	knobs := map[string]string{}
	for k, v := range s.DCQCN {
		knobs[k] = string(v)
		cnps = cnps || k == "min_time_between_cnps" || k == "cnp_dscp" || k == "cnp_802p_prio" || k == "profile"
	}
	if p, err = fabric.Turn(base, knobs); err == nil {
		p, _ = LeastRate(p, l, d)
		_, err = dcqcn.NewReaction(p, dcqcn.Rate(l.Rate))
	}
	if err != nil {
		return p, cnps, strict.Under("dcqcn", err)
	}
	if p == base {
		return p, cnps, strict.At("dcqcn", "%s has these parameters already", at)
	}
	return p, cnps, nil
}
