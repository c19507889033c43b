package fabric

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/topo"
)

// Watcher is a fabric that can tell when a packet of a class first passes a port.
type Watcher interface {
	// Watch has seen called with the fabric's time when a packet of one of the classes first passes the port, in either
	// direction: once, and on an unspecified goroutine; in virtual time where the port's node is. The function it returns ends
	// the watch; its error says that packets passed unseen. In virtual time both are called between drives.
	Watch(ctx context.Context, port topo.PortRef, class packet.Class, seen func(at loop.Time)) (stop func() error, err error)
}

// WatchCaptured is Watch by way of a capture, which may leave out what is of no such class: every packet is looked at until one is.
func WatchCaptured(port topo.PortRef, class packet.Class, seen func(at loop.Time), capture func(PacketSink) (stop func() (given, missed uint64, err error), err error)) (stop func() error, err error) {
	w := &watching{class: class, seen: seen}
	end, err := capture(w)
	if err != nil {
		return nil, err
	}
	return sync.OnceValue(func() error {
		_, missed, err := end()
		switch {
		case errors.Is(err, errSeen) || w.found:
			return nil
		case err == nil && missed > 0:
			return fmt.Errorf("%s: watch for %v: %d packets passed unseen", port, class, missed)
		case err != nil:
			return fmt.Errorf("%s: watch for %v: %w", port, class, err)
		}
		return nil
	}), nil
}

// watching is a sink that takes packets until it has seen one of a class.
type watching struct {
	class packet.Class
	seen  func(at loop.Time)
	found bool
	view  roce.View
}

var errSeen = errors.New("seen")

// Packet implements PacketSink. Its error ends the capture.
func (w *watching) Packet(at loop.Time, data []byte, _ int) error {
	_ = w.view.Parse(data) // as much as can be read of it
	facts, ok := packet.Of(&w.view)
	if !ok || facts.Class()&w.class == 0 {
		return nil
	}
	w.found = true
	w.seen(at)
	return errSeen
}
