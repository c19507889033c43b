//go:build linux

package engine

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf/ringbuf"
)

// EventKind is what an event tells.
type EventKind uint8

// The events (enum event_kind).
const (
	XOFF   EventKind = iota + 1 // an ingress group reached its threshold
	XON                         // and may go on
	Obeyed                      // a port was paused
	CNP                         // a CNP came in
	Marked                      // a marked packet came in whose flow is due a notice
	Told                        // the first frame after a threshold was reached came in, and the kernel has told the peer
)

var eventNames = [...]string{XOFF: "xoff", XON: "xon", Obeyed: "obeyed", CNP: "cnp", Marked: "marked", Told: "told"}

func (k EventKind) String() string {
	if int(k) < len(eventNames) && eventNames[k] != "" {
		return eventNames[k]
	}
	return fmt.Sprintf("EventKind(%d)", uint8(k))
}

// Event is something that happened at a port.
type Event struct {
	At       time.Duration // CLOCK_MONOTONIC
	Port     int
	Kind     EventKind
	Priority uint8 // of XOFF, XON and Obeyed
	// Of CNPs and marked packets: the queue pair that they were sent to, and who sent them.
	QPN    uint32
	Source netip.Addr
}

// Events is the ring.
type Events struct {
	r      *ringbuf.Reader
	record ringbuf.Record
}

// Next waits for an event until a time (SetDeadline); its error is os.ErrDeadlineExceeded then, and ringbuf.ErrClosed once the ring is closed.
func (e *Events) Next() (Event, error) {
	if err := e.r.ReadInto(&e.record); err != nil {
		return Event{}, err
	}
	return decode(e.record.RawSample)
}

// SetDeadline bounds what Next waits; the zero time lifts the bound.
func (e *Events) SetDeadline(at time.Time) { e.r.SetDeadline(at) }

// Wake ends a wait of Next with ringbuf.ErrFlushed, now or the next time.
func (e *Events) Wake() error { return e.r.Flush() }

// Close ends Next.
func (e *Events) Close() error { return e.r.Close() }

const eventSize = 32

func decode(b []byte) (Event, error) {
	if len(b) < eventSize {
		return Event{}, fmt.Errorf("port engine: an event of %d bytes", len(b))
	}
	n := binary.NativeEndian
	v := Event{At: time.Duration(n.Uint64(b)), Port: int(n.Uint16(b[8:])), Kind: EventKind(b[10]), Priority: b[11], QPN: n.Uint32(b[12:])}
	v.Source = netip.AddrFrom16([16]byte(b[16:32])).Unmap()
	return v, nil
}
