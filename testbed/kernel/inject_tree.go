//go:build linux

package kernel

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/kernel/tc"
	"github.com/rocebed/rocebed/topo"
)

// turn is what a fault changes of the queues that a port's tree is declared to have. The shape of the tree stays, so that what waits there does, too.
type turn struct {
	// set changes a queue, or says why it can't; it is given the queue as it is without faults.
	set func(q *tc.Priority) error
	// part is what of a queue the fault is about, for comparisons; restore puts that part back.
	part    func(q *tc.Priority) any
	restore func(q, from *tc.Priority)
}

func turnOf(s *faults.Spec) turn {
	marker := turn{
		part: func(q *tc.Priority) any {
			if q.Marker == nil {
				return nil
			}
			return *q.Marker
		},
		restore: func(q, from *tc.Priority) { q.Marker = from.Marker },
	}
	to := tc.Marker{Kmin: s.KMin, Kmax: s.KMax, Pmax: s.PMax}
	switch s.Kind {
	case faults.ECNOff:
		to = tc.Marker{Off: true}
		fallthrough
	case faults.ECNThresholds:
		marker.set = func(q *tc.Priority) error {
			if q.Marker == nil {
				return fmt.Errorf("the port marks nothing, and a marker that comes and goes would take what waits in the queue along (give switches.ecn)")
			}
			q.Marker = &to
			return nil
		}
		return marker
	}
	return turn{ // buffer-shrink
		part:    func(q *tc.Priority) any { return q.Limit },
		restore: func(q, from *tc.Priority) { q.Limit = from.Limit },
		set: func(q *tc.Priority) error {
			if s.Buffer >= q.Limit {
				return fmt.Errorf("its queue holds %v, which %v is not less than", q.Limit, s.Buffer)
			}
			q.Limit = s.Buffer
			return nil
		},
	}
}

// treed is a fault in the queues of one port.
type treed struct {
	f    *Fabric
	ref  topo.PortRef
	turn turn

	before  uint64 // packets that the port had sent when it was applied
	final   uint64
	applied bool
	healed  bool
}

// base is the port as the scenario has it.
func (e *treed) base() tc.Port {
	p, _ := e.f.Plan().Port(e.ref)
	return e.f.cfg.port(p, e.f.Plan().Node(e.ref.Node).Role)
}

// on is a declaration with the fault in it.
func (e *treed) on(d tc.Port) (tc.Port, error) {
	d.Priorities = slices.Clone(d.Priorities)
	for i := range d.Priorities {
		if err := e.turn.set(&d.Priorities[i]); err != nil {
			return d, fmt.Errorf("%s: %w", e.ref, err)
		}
	}
	return d, nil
}

func (e *treed) ports() *ports { return e.f.nodes[e.ref.Node].ports }

func (e *treed) possible() error {
	base := e.base()
	d, err := e.on(base)
	if err != nil {
		return err
	}
	if e.alike(d, base) == nil {
		return fmt.Errorf("%s: it would change nothing", e.ref)
	}
	if err := d.Check(); err != nil {
		return fmt.Errorf("%s: %w", e.ref, err)
	}
	return nil
}

// alike says where two declarations differ in what the fault is about.
func (e *treed) alike(got, want tc.Port) error {
	for i := range want.Priorities {
		g, w := e.turn.part(&got.Priorities[i]), e.turn.part(&want.Priorities[i])
		if !reflect.DeepEqual(g, w) {
			return fmt.Errorf("%s: declared of its queue %d is %+v, not %+v", e.ref, i, g, w)
		}
	}
	return nil
}

// allowed refuses a port where another fault has changed the same.
func (e *treed) allowed() error {
	if e.alike(e.ports().declaration(e.ref.Port).tree, e.base()) != nil {
		return fmt.Errorf("%s: another fault has changed its queue already", e.ref)
	}
	return nil
}

func (e *treed) apply() (err error) {
	if err := e.possible(); err != nil {
		return err
	}
	if err := e.allowed(); err != nil {
		return err
	}
	if e.before, err = e.ports().sent(e.ref.Port); err != nil {
		return err
	}
	err = e.ports().change(e.ref.Port, func(d declaration) declaration { d.tree, _ = e.on(d.tree); return d })
	e.applied = err == nil
	return err
}

func (e *treed) verify() error {
	want, err := e.on(e.base())
	if err == nil {
		err = e.alike(e.ports().declaration(e.ref.Port).tree, want)
	}
	if err != nil {
		return err
	}
	return e.ports().verify(e.ref.Port)
}

// hits are the packets that the port has sent since.
func (e *treed) hits() (uint64, error) {
	if e.healed {
		return e.final, nil
	}
	n, err := e.ports().sent(e.ref.Port)
	return n - e.before, err
}

func (e *treed) heal() error {
	if e.healed || !e.applied {
		return nil
	}
	n, err := e.hits()
	if err != nil {
		return err
	}
	base := e.base()
	err = e.ports().change(e.ref.Port, func(d declaration) declaration {
		d.tree.Priorities = slices.Clone(d.tree.Priorities)
		for i := range d.tree.Priorities {
			e.turn.restore(&d.tree.Priorities[i], &base.Priorities[i])
		}
		return d
	})
	if err == nil {
		e.final, e.healed = n, true
	}
	return err
}

func (e *treed) clean() error {
	if err := e.alike(e.ports().declaration(e.ref.Port).tree, e.base()); err != nil {
		return err
	}
	return e.ports().verify(e.ref.Port)
}
