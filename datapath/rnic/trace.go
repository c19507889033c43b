package rnic

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// Stage is a place that a message's packets pass in the hardware.
type Stage uint8

// The stages: down through the requester (for READ responses, the responder) to the wire, and up from it.
const (
	StagePost      Stage = iota // the verbs call
	StageDoorbell               // the device knows of it
	StageWQEFetch               // its work queue element is in the device
	StageTranslate              // the addresses of a packet's payload are known
	StageDMARead                // its payload is in the device
	StageHeaders                // segmentation and headers: the packet is made
	StagePacing                 // the rate limiter let it go
	StageQueue                  // its priority might send (PFC), and it was its turn
	StageWire                   // its last bit left
	StageArrive                 // a packet is in the receive buffer
	StageContext                // ICRC and QP context are checked
	StageDMAWrite               // its payload is in memory
	StageAck                    // an acknowledgement that ends the message came in
	StageCQE                    // its completion is visible
	stages
)

var stageNames = [stages]string{"post", "doorbell", "WQE fetch", "translate", "DMA read", "headers", "pacing", "queue", "wire",
	"arrive", "context", "DMA write", "ack", "CQE"}

// String is the stage's name.
func (s Stage) String() string {
	if s < stages {
		return stageNames[s]
	}
	return fmt.Sprintf("Stage(%d)", uint8(s))
}

// TraceEvent says that something of a message was through a stage. A repeated packet is traced again.
type TraceEvent struct {
	At        loop.Time // may be later than now: stages are worked out ahead
	QPN       uint32    // of this device
	Message   uint64    // the QP's, counted from 0 on each side: its send requests, or what it received
	PSN       roce.PSN  // of the packet; of no meaning before StageTranslate and in StageCQE
	Bytes     int32     // payload
	Stage     Stage
	Responder bool // the message is one that the QP received or answers
}

// Tracer is told of messages' stages, on the device's loop. A device without one pays a comparison.
type Tracer interface {
	Trace(TraceEvent)
}

// TraceRecorder is a Tracer that keeps what happened to the first messages.
type TraceRecorder struct {
	Name   string // the device's, for headings
	Limit  int    // messages kept; 0: all
	traces map[traceKey]*MessageTrace
	order  []*MessageTrace
	missed uint64
}

type traceKey struct {
	qpn       uint32
	responder bool
	message   uint64
}

// MessageTrace is one message's way through the stages of one device.
type MessageTrace struct {
	QPN       uint32
	Responder bool
	Message   uint64
	Stages    [stages]StageTrace
}

// StageTrace is how a message's packets passed a stage. Count is 0 where none did.
type StageTrace struct {
	First, Last loop.Time
	Count       int
	Bytes       int64
}

// Trace implements Tracer.
func (r *TraceRecorder) Trace(e TraceEvent) {
	k := traceKey{e.QPN, e.Responder, e.Message}
	m := r.traces[k]
	if m == nil {
		if r.Limit > 0 && len(r.order) >= r.Limit {
			r.missed++
			return
		}
		if r.traces == nil {
			r.traces = map[traceKey]*MessageTrace{}
		}
		m = &MessageTrace{QPN: e.QPN, Responder: e.Responder, Message: e.Message}
		r.traces[k] = m
		r.order = append(r.order, m)
	}
	s := &m.Stages[e.Stage]
	if s.Count == 0 {
		s.First, s.Last = e.At, e.At
	}
	s.First, s.Last = min(s.First, e.At), max(s.Last, e.At)
	s.Count++
	s.Bytes += int64(e.Bytes)
}

// Messages are the traces kept, in the order in which they began.
func (r *TraceRecorder) Messages() []*MessageTrace { return slices.Clone(r.order) }

// Missed is how many events belonged to messages beyond the limit.
func (r *TraceRecorder) Missed() uint64 { return r.missed }

// Message finds a trace, nil when there is none.
func (r *TraceRecorder) Message(qpn uint32, responder bool, message uint64) *MessageTrace {
	return r.traces[traceKey{qpn, responder, message}]
}

// barWidth is how many characters a timeline's bar has.
const barWidth = 40

// Timeline draws the message's stages: from when to when its packets passed each, counted from the
// first thing known of it, and a bar to scale.
//
//	rx1: QP 0x11, message 0 sent, began at 12µs
//	  stage        n  from        to
//	  post         1  0s          0s          |
//	  WQE fetch    1  850ns       850ns        |
//	  wire        16  1.61µs      6.98µs            ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
func (m *MessageTrace) Timeline(name string) string {
	var from, to loop.Time
	any := false
	for i := range m.Stages {
		s := &m.Stages[i]
		if s.Count == 0 {
			continue
		}
		if !any || s.First < from {
			from = s.First
		}
		to, any = max(to, s.Last), true
	}
	role := "sent"
	if m.Responder {
		role = "received"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: QP %#x, message %d %s, began at %v\n", name, m.QPN, m.Message, role, from)
	fmt.Fprintf(&b, "  %-10s %5s  %-11s %-11s\n", "stage", "n", "from", "to")
	span := max(int64(to-from), 1)
	col := func(t loop.Time) int { return int(int64(t-from) * (barWidth - 1) / span) }
	for i := range m.Stages {
		s := &m.Stages[i]
		if s.Count == 0 {
			continue
		}
		bar := strings.Repeat(" ", col(s.First)) + "|"
		if n := col(s.Last) - col(s.First); n > 0 {
			bar = strings.Repeat(" ", col(s.First)) + strings.Repeat("▇", n+1)
		}
		fmt.Fprintf(&b, "  %-10s %5d  %-11v %-11v %s\n", Stage(i), s.Count, s.First.Sub(from), s.Last.Sub(from), bar)
	}
	return b.String()
}

// String draws every message's timeline.
func (r *TraceRecorder) String() string {
	var b strings.Builder
	for _, m := range r.order {
		b.WriteString(m.Timeline(r.Name))
	}
	if r.missed > 0 {
		fmt.Fprintf(&b, "%d events of further messages were not kept\n", r.missed)
	}
	return b.String()
}
