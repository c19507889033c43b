package rnic

import (
	"time"

	"github.com/rocebed/rocebed/datapath/dcqcn"
)

// Recovery is how a requester of RC repeats what was lost.
type Recovery string

// The recovery modes.
const (
	GoBackN         Recovery = "go-back-n"        // from the first PSN missing on: what InfiniBand says
	GoBack0         Recovery = "go-back-0"        // the message from its start: history's bug
	SelectiveRepeat Recovery = "selective-repeat" // what is missing alone; ours to ours only
)

// Profile is a make of RNIC: its transport's habits, its hardware's times, its congestion
// control. The zero value of a latency is none, of a rate or a limit no limit.
type Profile struct {
	Name     string
	Recovery Recovery

	// MaxUnacked is how many PSNs a requester may have unacknowledged.
	MaxUnacked int
	// AckRequestEvery is after how many packets a requester asks for an ACK, besides at each message's end.
	AckRequestEvery int
	// AckEvery is how many packets that ask for an ACK a responder lets pass before it sends one for
	// all of them, at most; AckDelay how long it waits with one. 0 sends each at once.
	AckEvery int
	AckDelay time.Duration
	// TimerTick rounds the transport's timers up to its multiples: rxe's jiffies.
	TimerTick time.Duration

	// DCQCN are the parameters of reaction and notification point; nil: none, marks are ignored.
	DCQCN *dcqcn.Params

	Stages Stages
}

// Stages are the hardware's times, in fabric time, and rates, in bits a second.
type Stages struct {
	Doorbell  time.Duration // from post to the device
	WQEFetch  time.Duration // reading a work queue element over PCIe
	DMARead   time.Duration // latency of reading payload
	DMAWrite  time.Duration // latency of writing payload
	RxContext time.Duration // ICRC check and QP context of a packet that arrived
	CQEWrite  time.Duration // from the end of the work to its completion in the queue
	PCIeRate  uint64        // of the device's PCIe link, each direction
	Translate Translate
}

// Translate is the address translation's cost.
type Translate struct {
	Entries int           // pages that the cache holds; 0: everything hits
	Page    int           // bytes that an entry covers
	Miss    time.Duration // of fetching an entry over PCIe
}
