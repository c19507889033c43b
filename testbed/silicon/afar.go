package silicon

import (
	"fmt"
	"time"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/topo"
)

// afar is an effect in another process. What is done to it is done there; done may be called on any goroutine.
type afar interface {
	ask(s step, done func(hits uint64, err error))
}

// NICOrder is what is done to a fault in a NIC that another process has: plain data, which goes there and is done by a Ward.
type NICOrder struct {
	Step  string // of a fault's life
	Fault string // its name
	Port  int    // of the host

	// What of a fault's keys a NIC takes, with priorities as bits.
	Kind       faults.Kind
	Rate       uint64
	Delay      time.Duration
	Duty       float64
	Frequency  float64
	Quanta     uint16
	Priorities uint8
	PCIeGen    int
	PCIeWidth  int
	Entries    int
	AckEvery   int
	Down       time.Duration
	DCQCN      dcqcn.Params
	CNPs       bool // DCQCN's knobs of CNPs are among those that were turned
	Source     roce.Addr
	// QPs are the queue pairs that are meant, where Named; else all are.
	Named bool
	QPs   []uint32
}

func orderOf(s step, e *ailing) NICOrder {
	f := &e.spec
	return NICOrder{
		Step: s.name, Fault: f.Name, Port: e.slot, Kind: f.Kind, Rate: uint64(f.Rate), Delay: f.Delay, Duty: float64(f.Duty), Frequency: float64(f.Frequency), Quanta: f.Quanta,
		Priorities: f.Priorities.Bits(), PCIeGen: f.PCIe.Gen, PCIeWidth: f.PCIe.Width, Entries: f.Entries, AckEvery: f.AckEvery, Down: f.Down, DCQCN: e.what.dcqcn, CNPs: e.what.cnps, Source: e.what.source, Named: e.qps != nil, QPs: e.qps,
	}
}

func (o *NICOrder) spec() (s faults.Spec) {
	s.Name, s.Kind, s.Rate, s.Delay, s.Down = o.Fault, o.Kind, topo.Rate(o.Rate), o.Delay, o.Down
	s.Duty, s.Frequency, s.Quanta, s.Entries, s.AckEvery = topo.Fraction(o.Duty), faults.PerSecond(o.Frequency), o.Quanta, o.Entries, o.AckEvery
	s.PCIe = topo.PCIeLink{Gen: o.PCIeGen, Width: o.PCIeWidth}
	for i := range uint8(8) {
		if o.Priorities&(1<<i) != 0 {
			s.Priorities = append(s.Priorities, i)
		}
	}
	return s
}

// orderer is an end of a link whose NIC is in another process, and takes orders for it.
type orderer interface {
	Order(o NICOrder, done func(hits uint64, err error))
}

// ailingAfar is a fault in a NIC that another process has.
type ailingAfar struct{ *ailing }

func (e ailingAfar) ask(s step, done func(uint64, error)) {
	if o, ok := e.port.end.(orderer); ok {
		o.Order(orderOf(s, e.ailing), done)
		return
	}
	done(0, fmt.Errorf("%s: its NIC is in another process, which takes no orders", e.ref))
}

// Ward has the faults in the NICs of a host, for an injector in another process. It is used on the host's loop.
type Ward struct {
	host *Host
	ill  map[string]*ailing // by fault and port
}

// NewWard makes the ward of a host.
func NewWard(h *Host) *Ward { return &Ward{host: h, ill: map[string]*ailing{}} }

// Do does what an order says, and says how much the fault has hit.
func (w *Ward) Do(o NICOrder) (hits uint64, err error) {
	if o.Port < 0 || o.Port >= len(w.host.Ports) {
		return 0, fmt.Errorf("%s: it has no port %d", w.host.Name, o.Port)
	}
	p, key := w.host.Ports[o.Port], fmt.Sprintf("%s %d", o.Fault, o.Port)
	e := w.ill[key]
	for _, s := range steps {
		if s.name != o.Step {
			continue
		}
		if s.name == applying.name {
			if e, err = w.admit(&o, p); err != nil {
				return 0, err
			}
			w.ill[key] = e
		}
		if e == nil && (s.name == healing.name || s.name == cleaning.name) { // it never came into force
			return 0, nil
		}
		if e == nil {
			return 0, fmt.Errorf("%s: fault %s is not in force", p.Ref, o.Fault)
		}
		return s.do(e, p)
	}
	return 0, fmt.Errorf("%s: asked to %q fault %s", p.Ref, o.Step, o.Fault)
}

func (w *Ward) admit(o *NICOrder, p *Port) (*ailing, error) {
	spec := o.spec()
	var what ailment
	var err error
	switch o.Kind {
	case faults.DCQCNParams:
		what = retunedTo(o.DCQCN, o.CNPs)
	case faults.WrongGID:
		what = sendsFrom(o.Source)
	default:
		what, err = nicAilment(&spec, p.Link.Rate)
	}
	if err != nil {
		return nil, err
	}
	e := &ailing{spec: spec, ref: p.Ref, port: p, what: what, slot: o.Port}
	if o.Named {
		e.qps = append([]uint32{}, o.QPs...)
	}
	return e, nil
}
