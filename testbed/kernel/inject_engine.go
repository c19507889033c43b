//go:build linux

package kernel

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/rocebed/rocebed/datapath/asic"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/topo"
)

// turns are the settings of a linux-switch whose ports are the engine's: the scenario's, and the knobs that faults have turned. What is declared of its ports
// follows from both, so that faults heal in any order.
type turns struct {
	f    *Fabric
	node string
	base asic.Settings

	mu    sync.Mutex
	knobs []*silicon.Knob
}

// turnsOf are a switch's.
func (in *injector) turnsOf(n *topo.Node) (*turns, error) {
	in.turnsMu.Lock()
	defer in.turnsMu.Unlock()
	if t := in.turns[n.Name]; t != nil {
		return t, nil
	}
	base, _, err := in.f.cfg.switchSettings(n, topo.PortRef{})
	if err != nil {
		return nil, err
	}
	t := &turns{f: in.f, node: n.Name, base: base}
	in.turns[n.Name] = t
	return t, nil
}

// put turns a knob, behind those that are turned. After an error it is not.
func (t *turns) put(k *silicon.Knob) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.knobs
	t.knobs = append(slices.Clone(was), k)
	err := t.declare(was)
	if err != nil {
		now := t.knobs
		t.knobs = was
		err = errors.Join(err, t.declare(now))
	}
	return err
}

// take turns a knob back; the others stay.
func (t *turns) take(k *silicon.Knob) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.knobs
	t.knobs = slices.DeleteFunc(slices.Clone(was), func(have *silicon.Knob) bool { return have == k })
	err := t.declare(was)
	if err != nil {
		t.knobs = was
	}
	return err
}

func (t *turns) has(k *silicon.Knob) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.knobs, k)
}

// settings are those in force.
func (t *turns) settings() asic.Settings { return silicon.Turned(t.base, t.knobs...) }

func (t *turns) plan() []topo.PlanPort { return t.f.Plan().Ports(t.node) }

// port is what settings declare of a port, whatever else has been declared of it.
func (t *turns) port(i int, s asic.Settings, d declaration) declaration {
	p := *d.port
	t.f.cfg.switchPort(&p, s, i, t.f.Plan().Link(t.plan()[i].Ref))
	d.port = &p
	return d
}

func (t *turns) configs() []asic.PortConfig { return silicon.PortConfigs(t.f.Plan(), t.plan()) }

func (t *turns) shared(s *asic.Settings) topo.Bytes { return topo.Bytes(s.Shared(t.configs())) }

// declare makes the settings so, where they aren't those with other knobs.
func (t *turns) declare(was []*silicon.Knob) error {
	before, now := silicon.Turned(t.base, was...), t.settings()
	ports := t.f.nodes[t.node].ports
	for i, p := range t.plan() {
		if reflect.DeepEqual(before.PortSettings(i), now.PortSettings(i)) {
			continue
		}
		if err := ports.change(p.Ref.Port, func(d declaration) declaration { return t.port(i, now, d) }); err != nil {
			return err
		}
		if to := now.PortSettings(i).PFC.Send; to != before.PortSettings(i).PFC.Send {
			if err := t.f.agent.SetSends(t.f.numbers[p.Ref], to); err != nil {
				return fmt.Errorf("%s: %w", p.Ref, err)
			}
		}
	}
	if to := t.shared(&now); to != t.shared(&before) {
		if err := t.f.engine.SetMemory(t.f.index(t.node), to); err != nil {
			return err
		}
	}
	if w := t.f.watchdogOf(now.Watchdog); w != t.f.watchdogOf(before.Watchdog) {
		for _, p := range t.plan() {
			if err := t.f.agent.SetWatchdog(t.f.numbers[p.Ref], w); err != nil {
				return fmt.Errorf("%s: %w", p.Ref, err)
			}
		}
	}
	return nil
}

// agree reads everything back.
func (t *turns) agree() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.settings()
	ports := t.f.nodes[t.node].ports
	told, err := t.f.agent.Read()
	if err != nil {
		return err
	}
	for i, p := range t.plan() {
		have := ports.declaration(p.Ref.Port)
		if want := t.port(i, s, have); !reflect.DeepEqual(have, want) {
			return fmt.Errorf("%s: declared is %+v, not %+v", p.Ref, *have.port, *want.port)
		}
		if err := ports.verify(p.Ref.Port); err != nil {
			return err
		}
		r := told.Ports[t.f.numbers[p.Ref]]
		if want := s.PortSettings(i).PFC.Send; r.Sends != want {
			return fmt.Errorf("%s: its agent pauses priorities %#x, not %#x", p.Ref, r.Sends, want)
		}
		if want := t.f.watchdogOf(s.Watchdog); r.Watchdog != want {
			return fmt.Errorf("%s: its watchdog is %+v, not %+v", p.Ref, r.Watchdog, want)
		}
	}
	m, err := t.f.engine.Memory(t.f.index(t.node))
	if err != nil {
		return err
	}
	if want := t.shared(&s); topo.Bytes(m.Shared) != want {
		return fmt.Errorf("%s: its ports share %v of memory, not %v", t.node, topo.Bytes(m.Shared), want)
	}
	return nil
}

// turned is a fault in the settings of a switch, or of one of its ports.
type turned struct {
	in   *injector
	n    *topo.Node
	knob *silicon.Knob

	turns         *turns // once it was applied
	before, final uint64
	healed        bool
}

// turned makes the effect.
func (in *injector) turned(s *faults.Spec, n *topo.Node, at topo.PortRef) (*turned, error) {
	var ports []int
	for i, p := range in.f.Plan().Ports(n.Name) {
		if at.Port == "" || at == p.Ref {
			ports = append(ports, i)
		}
	}
	k, err := silicon.KnobOf(s, ports)
	return &turned{in: in, n: n, knob: k}, err
}

// possible refuses what the switch can't be set to, and what would change nothing.
func (e *turned) possible() error {
	base, _, err := e.in.f.cfg.switchSettings(e.n, topo.PortRef{})
	if err != nil {
		return err
	}
	if !e.knob.Changes(base) {
		return fmt.Errorf("%s: it would change nothing: the switch is like that already, or has nothing of the kind", e.n.Name)
	}
	s, plan := silicon.Turned(base, e.knob), e.in.f.Plan()
	if err := s.Validate(silicon.PortConfigs(plan, plan.Ports(e.n.Name))); err != nil {
		return fmt.Errorf("%s: %w", e.n.Name, err)
	}
	return nil
}

func (e *turned) allowed() error { return nil } // faults.Together says

func (e *turned) apply() (err error) {
	if err := e.possible(); err != nil {
		return err
	}
	t, err := e.in.turnsOf(e.n)
	if err != nil {
		return err
	}
	if e.before, _, err = e.count(); err != nil {
		return err
	}
	if err := t.put(e.knob); err != nil {
		return fmt.Errorf("%s: %w", e.n.Name, err)
	}
	e.turns = t
	return nil
}

func (e *turned) verify() error {
	if e.turns == nil || !e.turns.has(e.knob) {
		return fmt.Errorf("%s: it is not in the settings", e.n.Name)
	}
	return e.turns.agree()
}

func (e *turned) count() (count, level uint64, err error) {
	if !e.knob.Counts() {
		return 0, 0, nil
	}
	f := e.in.f
	plan := f.Plan().Ports(e.n.Name)
	var errs []error
	count, level = e.knob.Count(func(i int) asic.PortStats {
		r, err := f.engine.Read(f.numbers[plan[i].Ref])
		errs = append(errs, err)
		return statsOf(&r)
	})
	return count, level, errors.Join(errs...)
}

// statsOf is a reading, as far as hits are counted by it, as a software switch's port would have it.
func statsOf(r *engine.Reading) (st asic.PortStats) {
	for i := range r.Queues {
		q, g := &r.Queues[i], &r.Groups[i]
		st.Queues[i] = asic.QueueStats{TxFrames: q.TxFrames, Drops: q.Drops, Mismarked: q.Mismarked, Frames: q.Packets}
		st.Groups[i].HeadroomDrops = g.HeadroomDrops
		st.RxPriority[i], st.Against[i] = g.Frames, q.Against
		st.Watched += g.Watched
	}
	return st
}

func (e *turned) hits() (uint64, error) {
	switch {
	case e.healed:
		return e.final, nil
	case e.turns == nil:
		return 0, nil
	case !e.knob.Counts():
		return 1, nil
	}
	count, level, err := e.count()
	return count - e.before + level, err
}

func (e *turned) heal() error {
	if e.healed || e.turns == nil {
		return nil
	}
	n, err := e.hits()
	if err != nil {
		return err
	}
	if err := e.turns.take(e.knob); err != nil {
		return fmt.Errorf("%s: %w", e.n.Name, err)
	}
	e.final, e.healed = n, true
	return nil
}

func (e *turned) clean() error {
	switch {
	case e.turns == nil:
		return nil
	case e.turns.has(e.knob):
		return fmt.Errorf("%s: it is still in the settings", e.n.Name)
	}
	return e.turns.agree()
}
