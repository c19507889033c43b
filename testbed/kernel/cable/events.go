//go:build linux

package cable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"

	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/testbed/kernel/bpf"
)

// Events are packet events: which packets, and what is done to them, by a program in C (testbed/kernel/bpf). Times are wall times.
type Events struct{ Program *packet.Program }

func (Events) order() int { return 0 } // they see what the port has sent

func (e Events) check() error {
	if len(e.Program.Rules) > maxRules {
		return fmt.Errorf("%d rules are more than %d", len(e.Program.Rules), maxRules)
	}
	return nil
}

func (e Events) same(o Model) bool {
	other, ok := o.(Events)
	return ok && e.Program.Window == other.Program.Window && e.Program.Seed == other.Program.Seed && bytes.Equal(e.Program.Encode(nil), other.Program.Encode(nil))
}

func (e Events) settles() (what uint32) {
	for i := range e.Program.Rules {
		switch do := e.Program.Rules[i].Do; {
		case do&(packet.DoHold|packet.DoDelay) != 0:
			return settlesHeld
		case do&packet.DoDuplicate != 0:
			what = settlesCopies
		}
	}
	return what
}

// Limits of the program.
const (
	maxRules       = 1 << 16
	maxList        = 1024    // rules of a connection and direction
	maxConnections = 1 << 14 // directions of them
	maxPages       = 1 << 14 // of 512 passes
	roundsAt       = packet.EntryLen
	listAt         = roundsAt + 4*8
	knownLen       = listAt + 2*maxList
)

// picks is what a stage of Events has beside the program.
type picks struct {
	prog                        *packet.Program
	rules, events, known, pages *ebpf.Map
	nobody                      *ebpf.Map

	mu    sync.Mutex
	table *packet.Table
	keys  []packet.Key
	err   error // a connection that could not be told of
}

// newEvents loads the programs of Events.
func newEvents(f *forwarder, e Events, out int) (_ *Stage, err error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	spec, err := bpf.LoadPick()
	if err != nil {
		return nil, err
	}
	passes := uint32(1)
	for i := range e.Program.Rules {
		if e.Program.Rules[i].Flags&packet.FlagPasses != 0 {
			passes = maxPages
		}
	}
	for name, n := range map[string]uint32{
		bpf.PickMapRules: uint32(max(len(e.Program.Rules), 1)), bpf.PickMapEvents: uint32(max(e.Program.Events, 1)), bpf.PickMapKnown: maxConnections, bpf.PickMapPages: passes,
	} {
		spec.Maps[name].MaxEntries = n
	}
	for name, v := range map[string]any{
		bpf.PickVarOps: packet.Opcodes(), bpf.PickVarSyndromes: packet.Syndromes(), bpf.PickVarSeed: e.Program.Seed, bpf.PickVarWindow: e.Program.Window,
		bpf.PickVarHolds: boolean(e.settles() == settlesHeld),
	} {
		if err := spec.Variables[name].Set(v); err != nil {
			return nil, fmt.Errorf("set %s of the program: %w", name, err)
		}
	}
	c, err := f.load(spec)
	if err != nil {
		return nil, err
	}
	defer c.Close() // closes what isn't detached
	p := &picks{prog: e.Program, rules: c.DetachMap(bpf.PickMapRules), events: c.DetachMap(bpf.PickMapEvents), known: c.DetachMap(bpf.PickMapKnown),
		pages: c.DetachMap(bpf.PickMapPages), nobody: c.DetachMap(bpf.PickMapNobody)}
	s := &Stage{model: e, seed: e.Program.Seed, prog: c.DetachProgram(bpf.PickProgRbPick), data: c.DetachMap(bpf.PickMapRbStage), picks: p}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if e.settles() != settlesNothing {
		if s.end, err = newEnding(f, out); err != nil {
			return nil, err
		}
	}
	flat := e.Program.Encode(nil)
	for i := range e.Program.Rules {
		if err := p.rules.Put(uint32(i), flat[i*packet.RuleLen:][:packet.RuleLen]); err != nil {
			return nil, fmt.Errorf("put rule %d: %w", i, err)
		}
	}
	return s, p.reset()
}

func boolean(b bool) (n uint32) {
	if b {
		n = 1
	}
	return n
}

// reset makes the stage know no connection, and have counted nothing.
func (p *picks) reset() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table, p.err = p.prog.NewTable(), nil
	for _, k := range p.keys {
		if err := p.known.Delete(k.Encode(nil)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("forget a connection: %w", err)
		}
	}
	p.keys = nil
	if err := empty(p.pages); err != nil {
		return fmt.Errorf("forget passes: %w", err)
	}
	for i := range max(p.prog.Events, 1) {
		if err := p.events.Put(uint32(i), [2]uint64{}); err != nil {
			return fmt.Errorf("reset counters: %w", err)
		}
	}
	b, err := p.encode(0)
	if err == nil {
		err = p.nobody.Put(uint32(0), b)
	}
	return err
}

// empty deletes all elements of a hash.
func empty(m *ebpf.Map) error {
	for {
		var k uint32
		switch err := m.NextKey(nil, &k); {
		case errors.Is(err, ebpf.ErrKeyNotExist):
			return nil
		case err != nil:
			return err
		}
		if err := m.Delete(k); err != nil {
			return err
		}
	}
}

// encode is an entry of the table as the program has it: with its rounds, and its list.
func (p *picks) encode(entry uint32) ([]byte, error) {
	e := &p.table.Entries[entry]
	if e.Len > maxList {
		return nil, fmt.Errorf("%d rules are about one connection, more than %d", e.Len, maxList)
	}
	b := e.Encode(make([]byte, 0, knownLen))
	le := binary.LittleEndian
	for range 4 {
		b = le.AppendUint32(le.AppendUint32(b, 0), 1)
	}
	for _, i := range p.table.Lists[e.List : e.List+e.Len] {
		b = le.AppendUint16(b, i)
	}
	return b[:knownLen], nil
}

// Connect tells the stage of a connection. What can't be told Err says from then on.
func (s *Stage) Connect(c *packet.Connection) {
	p := s.picks
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := p.table.Add(c)
	for _, k := range keys {
		b, err := p.encode(p.table.Find(k))
		if err == nil {
			err = p.known.Put(k.Encode(nil), b)
		}
		if err != nil && p.err == nil {
			p.err = fmt.Errorf("tell the program of queue pair %s %#x: %w", k.Addr, k.QPN, err)
		}
		p.keys = append(p.keys, k)
	}
}

// Err is what has gone wrong with a stage in force: connections that it could not be told of, packets that it could not keep.
func (s *Stage) Err() error {
	var errs []error
	if s.picks != nil {
		s.picks.mu.Lock()
		errs = append(errs, s.picks.err)
		s.picks.mu.Unlock()
		v, err := s.read()
		if errs = append(errs, err); v.state > 0 {
			errs = append(errs, fmt.Errorf("the passes of %d packets could not be counted: there is room for %d PSNs", v.state, maxPages*512))
		}
	}
	if s.end != nil {
		errs = append(errs, s.end.shelf.failed())
	}
	return errors.Join(errs...)
}

// EventCounts are what each event has counted.
func (s *Stage) EventCounts() ([]packet.Count, error) {
	counts := make([]packet.Count, s.picks.prog.Events)
	for i := range counts {
		var v [2]uint64
		if err := s.picks.events.Lookup(uint32(i), &v); err != nil {
			return nil, fmt.Errorf("read counters: %w", err)
		}
		counts[i] = packet.Count{Seen: v[0], Hits: v[1]}
	}
	return counts, nil
}

// verify reads back the rules, and what is known of connections.
func (p *picks) verify() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	flat := p.prog.Encode(nil)
	for i := range p.prog.Rules {
		got, err := p.rules.LookupBytes(uint32(i))
		if err != nil {
			return fmt.Errorf("read rule %d: %w", i, err)
		}
		if !bytes.Equal(got, flat[i*packet.RuleLen:][:packet.RuleLen]) {
			return fmt.Errorf("rule %d is %x in the kernel, not %x", i, got, flat[i*packet.RuleLen:][:packet.RuleLen])
		}
	}
	same := func(got []byte, entry uint32) error {
		want, err := p.encode(entry)
		if err == nil && (len(got) != knownLen || !bytes.Equal(got[:roundsAt], want[:roundsAt]) || !bytes.Equal(got[listAt:], want[listAt:])) {
			err = errors.New("the kernel has something else")
		}
		return err
	}
	got, err := p.nobody.LookupBytes(uint32(0))
	if err == nil {
		err = same(got, 0)
	}
	if err != nil {
		return fmt.Errorf("what is known of connections that no workload has: %w", err)
	}
	for _, k := range p.keys {
		got, err := p.known.LookupBytes(k.Encode(nil))
		if err == nil {
			err = same(got, p.table.Find(k))
		}
		if err != nil {
			return fmt.Errorf("what is known of queue pair %s %#x: %w", k.Addr, k.QPN, err)
		}
	}
	return p.err
}

func (p *picks) close() error {
	var errs []error
	for _, m := range []*ebpf.Map{p.rules, p.events, p.known, p.pages, p.nobody} {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}
