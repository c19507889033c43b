package rnic

import (
	"errors"
	"fmt"
	"math"
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
// All times are fabric time. docs/rnic.md has each knob's source.
type Profile struct {
	Name     string
	Recovery Recovery

	// MaxUnacked is how many PSNs a requester may have unacknowledged.
	MaxUnacked int
	// AckRequestEvery is after how many packets a requester asks for an ACK, besides at each message's end; 0: there alone.
	AckRequestEvery int
	// AckEvery is how many packets that ask for an ACK a responder lets pass before it sends one for
	// all of them, at most; AckDelay how long it waits with one. 0 sends each at once.
	AckEvery int
	AckDelay time.Duration
	// TimerTick rounds the transport's timers up to its multiples: rxe's jiffies. They are wall time there: whoever
	// dilates divides them.
	TimerTick time.Duration
	// EndlessRetry takes a retry_cnt of 7 as for ever, as rxe does; the specification says seven times.
	EndlessRetry bool
	// OneNAK has a requester of go-back-N that went back heed no NAK of a missing packet until an ACK or a response has come or a message is done: what is
	// missing then waits for the local ACK timeout. So does rxe (started_retry in drivers/infiniband/sw/rxe/rxe_comp.c); the specification goes back for each.
	OneNAK bool

	// DCQCN are the parameters of reaction and notification point; nil: none, marks are counted and ignored.
	DCQCN *dcqcn.Params
	// CNPFlows is for how many flows the notification point can hold CNPs apart at once; 0: DefaultCNPFlows.
	CNPFlows int

	Scheduler Scheduler
	Pause     Pause
	Stages    Stages
}

// DefaultCNPFlows is how many flows a notification point tells apart where the profile doesn't say.
const DefaultCNPFlows = 4096

// Scheduler is how the port's priorities share its line. Within a priority control packets (ACK, NAK, CNP) go
// first, then queue pairs in turn, a packet each.
type Scheduler struct {
	// Weights give each priority its share of the line, in packets of the MTU a round (deficit round robin by
	// bytes). Priorities of weight 0 are strict: they go first, the highest number before the others.
	Weights [8]int
	// Burst is how many packets the port commits to the line at once, at most; 0: one. A pause finds one packet on
	// the line and Burst - 1 that it can't hold back.
	Burst int
}

// Pause is the port's flow control, both ways.
type Pause struct {
	// Lossless are the priorities for which the port sends and obeys 802.1Qbb frames, bit i for priority i.
	Lossless uint8
	// Global sends and obeys 802.3x frames, for all priorities, instead.
	Global bool
	// Quanta is what a pause asks for, in 512 bit times; 0: 65535.
	Quanta uint16

	// A priority of the receive buffer that holds more than XOFF bytes is paused, until it holds no more than XON. What comes
	// in beyond XOFF + Headroom is dropped. A priority without flow control is dropped beyond XOFF. 0: no limit.
	XOFF, XON, Headroom int
}

// Stages are the hardware's times and rates.
type Stages struct {
	Doorbell    time.Duration // from post to the device
	WQEFetch    time.Duration // reading a work queue element, without the PCIe's queueing; 0: it comes with the doorbell
	MessageRate float64       // work queue elements a second that the device takes; 0: no limit
	Headers     time.Duration // segmentation and headers of a packet
	PacketRate  float64       // packets a second, each direction; 0: no limit
	Prefetch    time.Duration // how long before its turn a packet's payload is asked for, at most
	RxContext   time.Duration // ICRC check and QP context of a packet that arrived
	CQEWrite    time.Duration // from the end of the work to its completion in the queue
	Jitter      time.Duration // by how much less than this a frame is on the wire late, at random: in order, and the line's rate stays

	MTT   Translate // the device's own address translation
	IOMMU Translate // behind it, by ATS

	// PCIe is the switch that a device makes for itself where its Config names none.
	PCIe PCIeConfig
}

// Validate says what is wrong, every field by its name, joined.
func (p *Profile) Validate() error {
	var wrong []error
	check := func(ok bool, field string, value any, want string) {
		if !ok {
			wrong = append(wrong, &ProfileError{Profile: p.Name, Field: field, Value: value, Want: want})
		}
	}
	under := func(field string, err error) {
		if err != nil {
			wrong = append(wrong, &ProfileError{Profile: p.Name, Field: field, Err: err})
		}
	}
	switch p.Recovery {
	case GoBackN, GoBack0, SelectiveRepeat:
	default:
		check(false, "Recovery", fmt.Sprintf("%q", p.Recovery), fmt.Sprintf("give %q, %q or %q", GoBackN, GoBack0, SelectiveRepeat))
	}
	check(p.MaxUnacked >= 0 && p.MaxUnacked < 1<<23, "MaxUnacked", p.MaxUnacked, "give how many PSNs may be unacknowledged, less than 2^23, or 0 for no limit but that")
	check(p.AckRequestEvery >= 0, "AckRequestEvery", p.AckRequestEvery, "give after how many packets an ACK is asked for, or 0 for at the message's end alone")
	check(p.AckEvery >= 0, "AckEvery", p.AckEvery, "give how many packets one ACK is for, or 0")
	check(p.AckDelay >= 0, "AckDelay", p.AckDelay, "give how long an ACK may wait, or 0")
	check(p.AckEvery <= 1 || p.AckDelay > 0, "AckDelay", p.AckDelay, fmt.Sprintf("with AckEvery %d an ACK that waits for more packets needs an end of its wait", p.AckEvery))
	check(p.TimerTick >= 0, "TimerTick", p.TimerTick, "give what timers are rounded up to, or 0")
	check(p.CNPFlows >= 0, "CNPFlows", p.CNPFlows, "give how many flows are told apart, or 0 for the default")
	if p.DCQCN != nil {
		under("DCQCN", p.DCQCN.Validate())
	}
	for i, w := range p.Scheduler.Weights {
		check(w >= 0 && w <= 1<<16, fmt.Sprintf("Scheduler.Weights[%d]", i), w, "give a share in packets a round, or 0 for strict priority")
	}
	check(p.Scheduler.Burst >= 0 && p.Scheduler.Burst <= 64, "Scheduler.Burst", p.Scheduler.Burst, "give how many packets are committed at once, at most 64, or 0 for one")
	b := &p.Pause
	check(b.XOFF >= 0 && b.XON >= 0 && b.Headroom >= 0, "Pause.XOFF", b.XOFF, "thresholds must not be negative")
	check(b.XON <= b.XOFF, "Pause.XON", b.XON, fmt.Sprintf("it must not exceed XOFF %d", b.XOFF))
	check(!b.Global || b.Lossless == 0 || b.Lossless == 0xff, "Pause.Lossless", fmt.Sprintf("%#x", b.Lossless), "802.3x knows no priorities: leave Lossless 0 with Global")
	p.Stages.validate(check, under)
	return errors.Join(wrong...)
}

func (s *Stages) validate(check func(ok bool, field string, value any, want string), under func(string, error)) {
	for _, t := range []struct {
		name string
		d    time.Duration
	}{{"Doorbell", s.Doorbell}, {"WQEFetch", s.WQEFetch}, {"Headers", s.Headers}, {"Prefetch", s.Prefetch}, {"RxContext", s.RxContext}, {"CQEWrite", s.CQEWrite}, {"Jitter", s.Jitter}} {
		check(t.d >= 0 && t.d < time.Second, "Stages."+t.name, t.d, "give a latency below 1s, or 0")
	}
	check(okRate(s.MessageRate), "Stages.MessageRate", s.MessageRate, "give work queue elements a second, at least 1, or 0 for no limit")
	check(okRate(s.PacketRate), "Stages.PacketRate", s.PacketRate, "give packets a second, at least 1, or 0 for no limit")
	under("Stages.MTT", s.MTT.Validate())
	under("Stages.IOMMU", s.IOMMU.Validate())
	under("Stages.PCIe", s.PCIe.Validate())
}

func okRate(r float64) bool { return r == 0 || r >= 1 && !math.IsInf(r, 0) }

// each is how long one of so many a second takes.
func each(rate float64) time.Duration {
	if rate == 0 {
		return 0
	}
	return time.Duration(float64(time.Second) / rate)
}

// ProfileError is a field of a profile whose value can't be.
type ProfileError struct {
	Profile string
	Field   string
	Value   any
	Want    string // what would do
	Err     error  // or what the field's own type says
}

func (e *ProfileError) Error() string {
	name := e.Profile
	if name == "" {
		name = "without a name"
	}
	if e.Err != nil {
		return fmt.Sprintf("RNIC profile %s: %s: %v", name, e.Field, e.Err)
	}
	return fmt.Sprintf("RNIC profile %s: %s is %v: %s", name, e.Field, e.Value, e.Want)
}

func (e *ProfileError) Unwrap() error { return e.Err }
