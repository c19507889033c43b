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
	stages, err := d.declared.programs()
	if err != nil {
		return err
	}
	for _, i := range d.declared.Impairments {
		if i.Stage != nil && i.Stage.picks != nil {
			if err := i.Stage.picks.verify(); err != nil {
				return fmt.Errorf("%s: %w", i.ID, err)
			}
		}
	}
	h, err := s.forward.get(d.in)
	if err != nil {
		return err
	}
	if h != d.hop || (h.Flags&flagStages != 0) != (len(stages) > 0) {
		return fmt.Errorf("packets are forwarded to %+v, not %+v with %d stages", h, d.hop, len(stages))
	}
	if len(stages) > 0 {
		var want []ebpf.ProgramID
		for _, p := range stages {
			id, err := idOf(p)
			if err != nil {
				return err
			}
			want = append(want, id)
		}
		got, err := s.forward.bank(d.in, h.Flags)
		if err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("the kernel runs programs %v, not %v", got, want)
		}
	}
	if err := s.verifyHooks(d); err != nil {
		return err
	}
	if s.noNetem != nil {
		return nil
	}
	q, err := d.declared.netem()
	if err != nil {
		return err
	}
	tree, err := s.conn.Tree(d.out)
	if err != nil {
		return err
	}
	return tc.Verify(tree, []tc.Object{delayLine(q)})
}

// verifyHooks checks that the forwarder, and nothing else, sees what arrives.
func (s *Set) verifyHooks(d *wire) error {
	err := s.ns.Do(func() error {
		q, err := link.QueryPrograms(link.QueryOptions{Target: d.in, Attach: ebpf.AttachTCXIngress})
		if err == nil && len(q.Programs) > 0 {
			err = fmt.Errorf("programs that are not ours hang on it: %v", q.Programs)
		}
		return err
	})
	if err != nil {
		return err
	}
	forward, err := idOf(s.forward.prog)
	if err != nil {
		return err
	}
	hooks, err := s.conn.Hooks(d.in)
	if err != nil {
		return err
	}
	want := []uint32{uint32(forward)}
	if p := s.first(d); p != nil {
		id, err := idOf(p)
		if err != nil {
			return err
		}
		want = []uint32{uint32(id), uint32(forward)}
	}
	if !slices.Equal(hooks, want) {
		return fmt.Errorf("the kernel forwards by programs %v, not %v", hooks, want)
	}
	return nil
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
