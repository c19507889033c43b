//go:build linux

package cable

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/rocebed/rocebed/testbed/kernel/bpf"
)

// What the end of the chain is needed for: nothing, copies alone, or holding packets too.
const (
	settlesNothing = iota
	settlesCopies
	settlesHeld
)

// settler is a Model whose stage leaves it to the end of the chain to copy or hold packets.
type settler interface{ settles() uint32 }

func settling(m Model) uint32 {
	if s, ok := m.(settler); ok {
		return s.settles()
	}
	return settlesNothing
}

// Holds says whether a model holds packets back.
func Holds(m Model) bool { return settling(m) == settlesHeld }

// LongestHeld is how long an IP packet may be to be held back.
const LongestHeld = room - ethernetHeader

// ending is the program at the end of a chain that does what stages have left to it, and the shelf on which it holds packets.
type ending struct {
	prog  *ebpf.Program
	shelf *shelf
}

func newEnding(f *forwarder, out int) (*ending, error) {
	spec, err := bpf.LoadSettle()
	if err != nil {
		return nil, err
	}
	c, err := f.load(spec)
	if err != nil {
		return nil, err
	}
	defer c.Close() // closes what isn't detached
	e := &ending{prog: c.DetachProgram(bpf.SettleProgRbSettle)}
	if e.shelf, err = newShelf(c.DetachMap(bpf.SettleMapShelf), c.DetachMap(bpf.SettleMapBooks), c.DetachMap(bpf.SettleMapWaiting), out); err != nil {
		return nil, errors.Join(err, e.prog.Close())
	}
	return e, nil
}

func (e *ending) close() error { return errors.Join(e.shelf.close(), e.prog.Close()) }

// load loads a collection that goes on along the forwarder's chain.
func (f *forwarder) load(spec *ebpf.CollectionSpec) (*ebpf.Collection, error) {
	own := map[string]*ebpf.Map{bpf.PickMapRbCables: f.table, bpf.PickMapRbStages: f.chain}
	for name, m := range own {
		spec.Maps[name].MaxEntries = m.MaxEntries()
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: own})
	if err != nil {
		return nil, fmt.Errorf("load program: %w", err)
	}
	return c, nil
}
