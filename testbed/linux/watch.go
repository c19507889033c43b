//go:build linux

package linux

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/topo"
)

// Watch has seen called when a packet of one of the classes first crosses a port's interface, in either direction: once, from a goroutine of
// its own. The kernel picks out what may be of them, and it is looked at here. at turns the kernel's timestamps into fabric time. The function it returns ends
// the watch; its error says that packets passed unseen.
func (n *Namespace) Watch(port string, class packet.Class, at func(time.Time) loop.Time, seen func(at loop.Time)) (stop func() error, err error) {
	w := &watch{class: class, seen: seen}
	end, err := n.capture(port, classFilter(class), at, w)
	if err != nil {
		return nil, err
	}
	return sync.OnceValue(func() error {
		_, missed, err := end()
		switch {
		case w.found:
			return nil
		case err == nil && missed > 0:
			return fmt.Errorf("%s:%s: watch for %v: %d packets passed unseen", n.node, port, class, missed)
		case err != nil:
			return fmt.Errorf("%s:%s: watch for %v: %w", n.node, port, class, err)
		}
		return nil
	}), nil
}

// watch is a sink that takes packets until it has seen one of a class.
type watch struct {
	class packet.Class
	seen  func(at loop.Time)
	found bool
	view  roce.View
}

var errSeen = errors.New("seen")

// Packet implements fabric.PacketSink. Its error ends the capture.
func (w *watch) Packet(at loop.Time, data []byte, _ int) error {
	_ = w.view.Parse(data) // as much as can be read of it
	facts, ok := packet.Of(&w.view)
	if !ok || facts.Class()&w.class == 0 {
		return nil
	}
	w.found = true
	w.seen(at)
	return errSeen
}

// Watch is Namespace.Watch at a port.
func (w *Wiring) Watch(port topo.PortRef, class packet.Class, at func(time.Time) loop.Time, seen func(loop.Time)) (stop func() error, err error) {
	ns, err := w.node(port.Node)
	if err != nil {
		return nil, err
	}
	return ns.Watch(port.Port, class, at, seen)
}
