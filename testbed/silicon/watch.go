package silicon

import (
	"slices"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults/packet"
)

// watch waits for the first packet of a class at a port.
type watch struct {
	class packet.Class
	seen  func(at loop.Time)
	done  bool
}

// Watch has seen called when a packet of a class first passes the port, sent or received, on the port's loop. What it sends
// counts when the port begins to send it, and whether or not a fault strikes it on the wire. Frames that come in must be given to the port itself, not to its device.
func (p *Port) Watch(class packet.Class, seen func(at loop.Time)) (stop func()) {
	w := &watch{class: class, seen: seen}
	p.watches = append(p.watches, w)
	p.Wire.watches = p.watches
	return func() {
		p.watches = slices.DeleteFunc(slices.Clone(p.watches), func(have *watch) bool { return have == w })
		p.Wire.watches = p.watches
	}
}

// look tells watches of a frame.
func look(watches []*watch, f *link.Frame, now loop.Time) {
	facts, ok := factsOf(f)
	if !ok {
		return
	}
	class := facts.Class()
	for _, w := range watches {
		if !w.done && w.class&class != 0 {
			w.done = true
			w.seen(now)
		}
	}
}
