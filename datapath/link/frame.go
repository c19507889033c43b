package link

import (
	"unsafe"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// NoDst is the Dst of a frame whose destination is no port of the fabric.
const NoDst = ^uint32(0)

// Frame is a frame in hand. It has one owner at a time: who passes it to a Wire or a
// Receiver gives it away, and the last owner frees it to the pool of where it runs.
//
// What a switch looks at stands in the frame itself, whatever form the rest has. RoCE in
// virtual time is in struct form (Packet, Bytes nil); what came from a socket, and ordinary
// traffic, is in byte form (Bytes, with View parsed). A switch changes TrafficClass and TTL
// here alone; who turns the frame into bytes writes them there (Flush does for byte form).
type Frame struct {
	// Timer is its owner's: a wire uses it for the arrival. It is the first field: arrive relies on it.
	Timer loop.Timer
	next  *Frame
	to    Receiver

	// From here to the Packet's BTH is what every hop looks at, in one cache line.

	Len          int32  // bytes from the Ethernet header on, without frame check sequence
	Dst          uint32 // the fabric's number of the port with the destination address, or NoDst
	Flow         uint32 // hash of addresses, protocol and ports: the flow's entropy, without any switch's seed
	Port         uint16 // the port of the present owner that it came in at
	Kind         roce.Kind
	TrafficClass uint8 // DSCP and ECN
	TTL          uint8
	Priority     uint8 // the present owner's: the priority it is queued in
	Tag          uint8 // the present owner's, for whatever it wants
	Damaged      bool  // struct form: bits were lost on the way, the ICRC doesn't fit

	// Bytes is the byte form: the whole frame. View is of it.
	Bytes []byte

	// Packet is the struct form of RoCE. Its Payload refers to memory that its owner leaves alone
	// until the message is done, or to Buf.
	Packet roce.Packet
	_      [16]byte // to whole cache lines
	// Content stands for the payload where memory has no bytes: what the bytes would be.
	Content []Extent
	// Buf is room that the frame owns, for payload that had to be copied.
	Buf []byte

	// PFC is what a frame of KindPFC in struct form says; of KindPause, all priorities alike.
	PFC roce.PFC

	View roce.View
}

// Extent is n bytes of a stream, from an offset on: what phantom memory holds instead of bytes.
// Stream 0 is zeros.
type Extent struct {
	Stream uint64
	Off    uint64
	Len    int
}

// ECN is the frame's.
func (f *Frame) ECN() roce.ECN { return roce.ECN(f.TrafficClass & 3) }

// DSCP is the frame's.
func (f *Frame) DSCP() uint8 { return f.TrafficClass >> 2 }

// MarkCE sets the frame's ECN field to CE.
func (f *Frame) MarkCE() { f.TrafficClass |= uint8(roce.CE) }

// Receiver takes frames that arrived whole at one of its ports. It owns them from then on.
type Receiver interface {
	Receive(f *Frame)
}

// Wire takes the frames that a port has serialised. It owns them from then on.
type Wire interface {
	// Send takes a frame whose last bit leaves the port at a time that is not before now. The times
	// of one port never go back. f.Port is not yet the far end's.
	Send(f *Frame, at loop.Time)
}

// ArriveAt prepares f.Timer to hand f to a receiver as something that came in at its port;
// the wire arms it.
func (f *Frame) ArriveAt(to Receiver, port uint16) {
	f.to, f.Port = to, port
	f.Timer.Do = arrive
}

// arrive hands over the frame that t is the timer of.
func arrive(t *loop.Timer) {
	f := (*Frame)(unsafe.Pointer(t)) // Timer is the first field
	t.Do = nil
	f.to.Receive(f)
}

// The first field, or this is a negative array length.
var _ [-int(unsafe.Offsetof(Frame{}.Timer))]struct{}
