package workloads

import (
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
)

// EventKind is what an event tells.
type EventKind string

// The events, in the order in which they can come.
const (
	EventReady     EventKind = "ready"     // once: every workload that starts by itself has its QPs up; At is the workloads' time zero
	EventFlowUp    EventKind = "flow-up"   // a flow's queue pairs are in RTS
	EventStarted   EventKind = "started"   // a workload's first messages are posted
	EventCompleted EventKind = "completed" // a flow has sent, and its destination checked, all it was to
	EventError     EventKind = "error"     // a flow failed: Text says how
	EventViolation EventKind = "violation" // a byte outcome that verbs semantics forbid
	EventFinished  EventKind = "finished"  // a workload has ended and its resources are gone: Result is set
)

// Event is something that happened while workloads ran.
type Event struct {
	At        loop.Time
	Kind      EventKind
	Workload  string
	Flow      string // "h1:eth0→h5:eth0#0"; empty for a workload's own events
	Text      string
	Violation *Violation
	Result    *Result
}

// Observer is told of events, one at a time, on the loop of the engine's first NIC. It must
// not block. Events of different hosts come in the order in which word of them arrives.
type Observer func(Event)

// Violation is a byte outcome that verbs semantics forbid for the QP type and the completion
// statuses that were seen.
type Violation struct {
	Workload string `json:"workload"`
	Flow     string `json:"flow"`
	Message  uint64 `json:"message"` // from 0
	Offset   uint64 `json:"offset"`  // in the message, bytes
	What     string `json:"what"`    // payload, guard, atomic, order, length, sum
	Want     uint64 `json:"want"`
	Got      uint64 `json:"got"`
}

func (v *Violation) String() string {
	return fmt.Sprintf("workload %s, flow %s, message %d, offset %d: %s: want %#x, got %#x", v.Workload, v.Flow, v.Message, v.Offset, v.What, v.Want, v.Got)
}
