//go:build linux

package cable

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/testbed/kernel/nl"
	"github.com/rocebed/rocebed/testbed/kernel/tc"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

// Set is all the cables of a wiring, and the one owner of what is on them.
type Set struct {
	ns      *linux.Namespace
	conn    *tc.Conn
	forward *forwarder
	before  func(topo.PortRef) *ebpf.Program

	wires   map[topo.PortRef]*wire // by the port that sends; as laid
	noNetem error                  // why there is no delay line, where there is none
}

// wire is one direction of a cable.
type wire struct {
	from    topo.PortRef
	in, out int // interface indices

	mu       sync.Mutex
	declared Wire
	line     tc.Netem // the delay line as it was last set
	hop      hop      // the forwarder's entry as it was last set
}

// Lay puts the forwarding program and the delay line on every cable of a wiring, which then can
// be connected. delay is the propagation delay of a link in wall time; before, if set, gives the program that sees what a port sends before
// the cable has it.
func Lay(w *linux.Wiring, delay func(*topo.Link) time.Duration, before func(topo.PortRef) *ebpf.Program) (_ *Set, err error) {
	s := &Set{ns: w.Cables(), wires: map[topo.PortRef]*wire{}, before: before}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	links := w.Plan().Topology.Links
	maxIndex := 0
	for i := range links {
		l := &links[i]
		a, _ := w.CableEnd(l.A)
		b, _ := w.CableEnd(l.B)
		maxIndex = max(maxIndex, a.Index, b.Index)
		s.wires[l.A] = &wire{from: l.A, in: a.Index, out: b.Index, declared: Wire{Delay: delay(l)}}
		s.wires[l.B] = &wire{from: l.B, in: b.Index, out: a.Index, declared: Wire{Delay: delay(l)}}
	}
	if s.forward, err = newForwarder(maxIndex); err != nil {
		return nil, err
	}
	if err := s.ns.Do(func() (err error) { s.conn, err = tc.Open(); return err }); err != nil {
		return nil, err
	}
	if err := s.layDelays(); err != nil {
		return nil, err
	}
	return s, s.layForwarders()
}

// first is the program that sees what a port sends before the cable does; nil: none.
func (s *Set) first(d *wire) *ebpf.Program {
	if s.before == nil {
		return nil
	}
	return s.before(d.from)
}

// layForwarders puts the forwarding program on every end. It hangs where stages come before it.
func (s *Set) layForwarders() error {
	var places, hooks nl.Batch
	for _, d := range s.wires {
		tc.AppendHookPlace(&places, d.in, d.from.String())
		if p := s.first(d); p != nil {
			tc.AppendHook(&hooks, d.in, p.FD(), d.from.String())
		}
		tc.AppendLastHook(&hooks, d.in, s.forward.prog.FD(), d.from.String())
	}
	if err := s.conn.Send(&places); err != nil {
		return err
	}
	return s.conn.Send(&hooks)
}

// layDelays gives every far end its delay line, used or not: adding one later would stop the
// interface for a moment and lose what arrives in it.
func (s *Set) layDelays() error {
	var b nl.Batch
	needed := false
	for _, d := range s.wires {
		q, err := d.declared.netem()
		if err != nil {
			return fmt.Errorf("%s: %w", d.from, err)
		}
		needed = needed || q.Delay > 0
		tc.AppendOp(&b, d.out, tc.Op{Verb: tc.Add, Object: delayLine(q)}, d.from.String())
		d.line, d.hop = q, hop{Out: uint32(d.out)}
		if delays(q) {
			d.hop.Flags |= flagDelay
		}
		if err := s.forward.set(d.in, d.hop); err != nil {
			return fmt.Errorf("%s: %w", d.from, err)
		}
	}
	err := s.conn.Send(&b)
	if err != nil && !needed && errors.Is(err, unix.ENOENT) {
		s.noNetem = fmt.Errorf("this kernel has no netem (module sch_netem): %w", unix.ENOENT)
		return nil
	}
	return err
}

const delayHandle = 1 << 16

func delayLine(q tc.Netem) tc.Object {
	return tc.Object{ID: delayHandle, Parent: tc.Root, Spec: q}
}

func delays(q tc.Netem) bool { return q.Delay > 0 || q.Jitter > 0 }

// Load loads the program of an impairment for the direction that begins at a port. It does nothing
// until the impairment is put on the wire, which then takes no time; whoever loads it closes it.
func (s *Set) Load(from topo.PortRef, m Model, seed uint64) (*Stage, error) {
	d, err := s.wire(from)
	if err != nil {
		return nil, err
	}
	stage, err := newStage(s.forward, m, seed, d.out)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if stage.end != nil {
		if err := stage.end.shelf.open(s.ns); err != nil {
			return nil, fmt.Errorf("%s: %w", from, errors.Join(err, stage.Close()))
		}
	}
	return stage, nil
}

// Wire is what is declared about the direction that begins at a port.
func (s *Set) Wire(from topo.PortRef) (Wire, error) {
	d, err := s.wire(from)
	if err != nil {
		return Wire{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.declared, nil
}

func (s *Set) wire(from topo.PortRef) (*wire, error) {
	if d, ok := s.wires[from]; ok {
		return d, nil
	}
	return nil, fmt.Errorf("%s: no cable begins there", from)
}

// Change declares something else about the direction that begins at a port, and makes it so.
// What both declarations have goes on undisturbed, its counters too. After an error, the old
// declaration is in force as far as the kernel lets it.
func (s *Set) Change(from topo.PortRef, change func(Wire) Wire) error {
	d, err := s.wire(from)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	want := change(d.declared)
	if err := want.Check(); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if err := s.reconcile(d, want); err != nil {
		return fmt.Errorf("%s: %w", from, errors.Join(err, s.reconcile(d, d.declared)))
	}
	d.declared = want
	return nil
}

// reconcile makes stages and delay as they are wanted. The delay line is set first, so that no
// packet meets a stage whose delay isn't there; then the other bank of the chain is filled, and
// one write to the table makes it the one that counts.
//
// Once packets have gone through the delay line they go on doing so, whatever the delay: past it
// they would overtake those that are still in it.
func (s *Set) reconcile(d *wire, want Wire) error {
	stages, err := want.programs()
	if err != nil {
		return err
	}
	q, err := want.netem()
	if err != nil {
		return err
	}
	if err := s.setDelay(d, q); err != nil {
		return err
	}
	h := hop{Out: d.hop.Out, Flags: d.hop.Flags & flagDelay}
	if delays(q) {
		h.Flags |= flagDelay
	}
	if want.settles() {
		h.Flags |= flagDelay | flagSettles
	}
	if len(stages) > 0 {
		h.Flags |= flagStages | ^d.hop.Flags&flagBank
		if err := s.forward.fill(d.in, h.Flags, stages); err != nil {
			return err
		}
	}
	if err := s.forward.set(d.in, h); err != nil {
		return err
	}
	d.hop = h
	return nil
}

func (s *Set) setDelay(d *wire, q tc.Netem) error {
	if s.noNetem != nil {
		if delays(q) {
			return s.noNetem
		}
		return nil
	}
	if q == d.line {
		return nil
	}
	var b nl.Batch
	tc.AppendOp(&b, d.out, tc.Op{Verb: tc.Change, Object: delayLine(q)}, "delay")
	if err := s.conn.Send(&b); err != nil {
		return err
	}
	d.line = q
	return nil
}

// Close lets go of programs and tables. What hangs on the interfaces goes with them.
func (s *Set) Close() error {
	var errs []error
	if s.forward != nil {
		errs = append(errs, s.forward.Close())
		s.forward = nil
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	return errors.Join(errs...)
}
