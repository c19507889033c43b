package asic

import (
	"time"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/link"
)

// Settings are a switch's knobs. Apply changes them at run time; what is in the buffer stays and
// leaves under the accounts that it came in under. Sizes are bytes of frames (Frame.Len), times
// fabric time. DefaultSettings is where to start from: the zero value has no buffer.
type Settings struct {
	// Buffer is the whole packet memory. Reserves and headrooms of all ports are set aside; the rest
	// is shared.
	Buffer dcqcn.Bytes
	// Port holds for all ports but those in Ports, which it maps from their index.
	Port  PortSettings
	Ports map[int]PortSettings

	Balance  Balance
	Watchdog Watchdog
	// Sample is how often the depth of every queue is taken into its histogram; 0: never.
	Sample time.Duration
	// RouteDelay is for how long after a link went down or came up the switch's routes don't follow, and frames
	// are sent into nothing; 0: they follow at once.
	RouteDelay time.Duration
}

// PortSettings are the knobs of a port. A frame's priority comes from the port that it comes in at, and so
// does its group; its queue from the port that it goes out at.
type PortSettings struct {
	// DSCP is the priority (traffic class), 0 to 7, of each DSCP. Frames without IP have priority 0.
	DSCP link.PriorityMap
	// QueueOf is the egress queue of each priority, GroupOf its ingress priority group.
	QueueOf [8]uint8
	GroupOf [8]uint8
	Queues  [8]Queue
	Groups  [8]Group
	PFC     PFC
	// MTU is the largest IP packet that the port sends, in bytes; longer ones are dropped.
	MTU int
	// Limit is what lossy frames may bring all queues of the port to; 0: no such limit, the dynamic thresholds do.
	Limit dcqcn.Bytes
	// Stuck are queues that are never served, bit i for queue i: a fault.
	Stuck uint8
	// Watched are DSCPs whose frames are counted as they come in (PortStats.Watched), bit i for DSCP i.
	Watched uint64
}

// Queue is one egress queue of a port.
type Queue struct {
	// Weight is the queue's share under DWRR; 0 is strict priority: before all weighted queues, the
	// higher queue first.
	Weight int
	// Reserved is what the queue may hold of lossy traffic whatever the others hold.
	Reserved dcqcn.Bytes
	// Alpha is the dynamic threshold of lossy traffic: what doesn't fit into Reserved must not exceed Alpha times
	// what is left of the shared buffer (Choudhury and Hahne, 1998).
	Alpha Alpha
	// LosslessAlpha is the same for lossless traffic in the queue, all of it; 0: no such threshold, as is proper.
	LosslessAlpha Alpha
	// ECN is when the queue marks; nil: never.
	ECN *dcqcn.Marking
	// Right is what ECN should be: frames of which it would have said something else are counted (QueueStats.Mismarked); nil: nobody asks.
	Right *RightECN
	// Rate is the most that the queue is served with, whatever the line has left; 0: no such limit.
	Rate dcqcn.Rate
}

// RightECN is a queue's marking as it should be; none: it should mark nothing.
type RightECN struct{ ECN *dcqcn.Marking }

// Group is one ingress priority group of a port.
type Group struct {
	// Lossless groups pause their priorities; the others' frames are dropped where a threshold says so.
	Lossless bool
	// Reserved is what a lossless group may hold whatever the others hold.
	Reserved dcqcn.Bytes
	// Alpha is the threshold, in shares of what is left of the shared buffer, of what the group holds beyond
	// Reserved: a lossless one's XOFF, where it isn't 0; a lossy one's limit (0: none).
	Alpha Alpha
	// XOFF is the threshold where Alpha is 0: bytes beyond Reserved.
	XOFF dcqcn.Bytes
	// XONOffset is how far below the XOFF threshold the group's holdings must fall for its pause to end.
	XONOffset dcqcn.Bytes
	// Headroom takes what comes after XOFF; what exceeds it is dropped. With AutoHeadroom it
	// follows from the port's rate, delay and MTU, and PFC.Response (see func Headroom).
	Headroom     dcqcn.Bytes
	AutoHeadroom bool
}

// PFC is how a port pauses and is paused.
type PFC struct {
	// Send are the priorities, bit i for priority i, that the port pauses its peer in, and Obey those
	// in which it lets itself be paused.
	Send uint8
	Obey uint8
	// Ignore are priorities that are not in Obey, of which the port counts what it sends against a pause.
	Ignore uint8
	// ObeyPause is whether 802.3x frames stop the port, all priorities.
	ObeyPause bool
	// SendPause is whether the port pauses its peer by 802.3x frames instead, whichever group asks for it.
	SendPause bool
	// Quanta is what a pause asks for, in 512 bit times, 1 to 65535. It is repeated when half of it is over.
	Quanta uint16
	// Response is how long a peer may take from a pause frame's arrival to obeying it. Automatic headroom allows
	// for it; the devices here take no time.
	Response time.Duration
}

// Action is what a watchdog does with a queue that it found stormed.
type Action string

// The actions.
const (
	StormDrop    Action = "drop"    // what waits and what comes is dropped
	StormForward Action = "forward" // the pause is ignored
	StormAlert   Action = "alert"   // told to the observer and counted, nothing else
)

// Watchdog finds queues that are paused and never resume, and takes them out of the pause.
type Watchdog struct {
	// Detect is for how long a queue with frames must have been paused without a break; 0: the watchdog is off.
	Detect time.Duration
	// Restore is for how long the queue must not have been paused for the watchdog to let go.
	Restore time.Duration
	Action  Action
}

// Mode is how frames are spread over ports of equal cost.
type Mode string

// The modes.
const (
	ECMP        Mode = "ecmp"         // by flow: hash of the five-tuple and the seed
	SprayRound  Mode = "spray"        // frame by frame, in turn
	SprayRandom Mode = "spray-random" // frame by frame, by lot
	Adaptive    Mode = "adaptive"     // frame by frame, where least waits
	Flowlet     Mode = "flowlet"      // by flow, but where least waits after a gap in it
)

// Balance is how frames are spread over ports of equal cost.
type Balance struct {
	Mode Mode
	// Priorities are those that Mode holds for, bit i for priority i; the others go by ECMP.
	Priorities uint8
	// HashSeed is mixed into the hash; nil: the switch's own. Switches of equal seeds polarise.
	HashSeed *uint64
	// RightSeed is what HashSeed should be: frames that ECMP sends elsewhere for the difference are counted (PortStats.Moved); nil: nobody asks.
	RightSeed *uint64
	// FlowletGap is how long a flow must be silent to be sent elsewhere.
	FlowletGap time.Duration
}

// DefaultSettings are those of a shared-buffer switch in a RoCE fabric: priority 3 lossless, the other
// priorities lossy, CNPs (priority 6) and priority 7 strictly first, the others by equal weights, no ECN.
// Sources of the figures: docs/asic.md.
func DefaultSettings() Settings {
	p := PortSettings{
		DSCP: link.DefaultPriorities(),
		PFC:  PFC{Send: 1 << 3, Obey: 1 << 3, ObeyPause: true, Quanta: 0xffff},
		MTU:  9216,
	}
	for i := range p.Queues {
		p.QueueOf[i], p.GroupOf[i] = uint8(i), uint8(i)
		p.Queues[i] = Queue{Weight: 1, Reserved: 2 * 9234, Alpha: 1 * AlphaUnit}
	}
	p.Queues[6].Weight, p.Queues[7].Weight = 0, 0
	p.Groups[3] = Group{Lossless: true, Reserved: 2 * 9234, Alpha: AlphaUnit / 8, XONOffset: 9234, AutoHeadroom: true}
	return Settings{
		Buffer:   32 << 20,
		Port:     p,
		Balance:  Balance{Mode: ECMP, Priorities: 0xff, FlowletGap: 50 * time.Microsecond},
		Watchdog: Watchdog{Detect: 200 * time.Millisecond, Restore: 200 * time.Millisecond, Action: StormDrop},
	}
}

// PortSettings are those that hold for a port.
func (s *Settings) PortSettings(port int) PortSettings {
	if p, ok := s.Ports[port]; ok {
		return p
	}
	return s.Port
}
