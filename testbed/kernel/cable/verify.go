//go:build linux

package cable

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/rocebed/rocebed/testbed/kernel/tc"
	"github.com/rocebed/rocebed/topo"
)

// Verify reads back from the kernel what is on the direction that begins at a port, and says how
// it differs from what is declared: the programs in their order, the forwarder's table, and the
// delay line with every parameter that the kernel reports.
func (s *Set) Verify(from topo.PortRef) error {
	d, err := s.wire(from)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		err = s.verify(d)
	}
	if err != nil {
		return fmt.Errorf("%s: verify cable: %w", from, err)
	}
	return nil
}

func (s *Set) verify(d *wire) error {
	var want []ebpf.ProgramID
	for _, i := range d.declared.Impairments {
		if i.Stage != nil && !slices.ContainsFunc(d.stages, func(p *placed) bool { return p.id == i.ID && p.stage.model == i.Stage && p.stage.seed == i.Seed }) {
			return fmt.Errorf("%s is not on it", i.ID)
		}
	}
	for _, p := range d.stages {
		id, err := idOf(p.stage.prog)
		if err != nil {
			return err
		}
		want = append(want, id)
	}
	var got []ebpf.ProgramID
	err := s.ns.Do(func() error {
		q, err := link.QueryPrograms(link.QueryOptions{Target: d.in, Attach: ebpf.AttachTCXIngress})
		if err != nil {
			return err
		}
		for _, p := range q.Programs {
			got = append(got, p.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the kernel runs programs %v, not %v", got, want)
	}
	forward, err := idOf(s.forward.prog)
	if err != nil {
		return err
	}
	hooks, err := s.conn.Hooks(d.in)
	if err != nil {
		return err
	}
	if !slices.Equal(hooks, []uint32{uint32(forward)}) {
		return fmt.Errorf("the kernel forwards by programs %v, not %v", hooks, forward)
	}

	q, err := d.declared.netem()
	if err != nil {
		return err
	}
	h, err := s.forward.get(d.in)
	if err != nil {
		return err
	}
	if h != d.hop() {
		return fmt.Errorf("packets are forwarded to %+v, not %+v", h, d.hop())
	}
	if s.noNetem != nil {
		return nil
	}
	tree, err := s.conn.Tree(d.out)
	if err != nil {
		return err
	}
	return tc.Verify(tree, []tc.Object{delayLine(q)})
}

func idOf(p *ebpf.Program) (ebpf.ProgramID, error) {
	info, err := p.Info()
	if err != nil {
		return 0, fmt.Errorf("read program: %w", err)
	}
	id, ok := info.ID()
	if !ok {
		return 0, fmt.Errorf("the kernel gives program %v no id", p)
	}
	return id, nil
}

// Counts are the counters of an impairment's stage.
func (s *Set) Counts(from topo.PortRef, id string) (Counts, error) {
	d, err := s.wire(from)
	if err != nil {
		return Counts{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.stages {
		if p.id == id {
			return p.stage.Counts()
		}
	}
	return Counts{}, fmt.Errorf("%s: %s is not on this cable", from, id)
}

// DelayLine is the delay line of the direction that begins at a port as the kernel has it: what
// has left it, what is in it. Drops are always none, or the machine has lost packets.
func (s *Set) DelayLine(from topo.PortRef) (tc.Stats, error) {
	d, err := s.wire(from)
	if err != nil || s.noNetem != nil {
		return tc.Stats{}, err
	}
	tree, err := s.conn.Tree(d.out)
	if err != nil {
		return tc.Stats{}, fmt.Errorf("%s: %w", from, err)
	}
	if len(tree) != 1 {
		return tc.Stats{}, fmt.Errorf("%s: %d qdiscs on the delay line", from, len(tree))
	}
	return tree[0].Stats, nil
}

// DelayLines are all delay lines, by the port that sends.
func (s *Set) DelayLines() (map[topo.PortRef]tc.Stats, error) {
	if s.noNetem != nil {
		return nil, nil
	}
	trees, err := s.conn.Trees()
	if err != nil {
		return nil, err
	}
	out := make(map[topo.PortRef]tc.Stats, len(s.wires))
	for from, d := range s.wires {
		for _, r := range trees[d.out] {
			out[from] = r.Stats
		}
	}
	return out, nil
}
