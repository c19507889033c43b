package fabric

import (
	"context"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/topo"
)

// Capturer is a fabric that can record what passes a port.
type Capturer interface {
	// Capture gives the packets of both directions of a port to sink, from one goroutine. The
	// function it returns ends that and says how many packets were given and how many were missed.
	Capture(ctx context.Context, port topo.PortRef, sink PacketSink) (stop func() (given, missed uint64, err error), err error)
}

// Departures is a fabric where a capture at a port that sends shows what faults on the link have left of it, but which can tell what there was before.
type Departures interface {
	// Departing gives the packets that a port sends to sink, from one goroutine, before any fault on its link has them. The function it returns ends that.
	Departing(port topo.PortRef, sink PacketSink) (stop func() error, err error)
}

// PacketSink takes packets. data is only valid during the call; length is the packet's on the
// wire, which may be more than what was captured of it. at is fabric time.
type PacketSink interface {
	Packet(at loop.Time, data []byte, length int) error
}
