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
	Buffer dcqcn.Bytes `yaml:"buffer"`
	// Port holds for all ports but those in Ports, which it maps from their index.
	Port  PortSettings         `yaml:"port"`
	Ports map[int]PortSettings `yaml:"ports"`

	Balance  Balance  `yaml:"balance"`
	Watchdog Watchdog `yaml:"watchdog"`
	// Sample is how often the depth of every queue is taken into its histogram; 0: never.
	Sample time.Duration `yaml:"sample"`
}

// PortSettings are the knobs of a port. A frame's priority comes from the port that it comes in at, and so
// does its group; its queue from the port that it goes out at.
type PortSettings struct {
	// DSCP is the priority (traffic class), 0 to 7, of each DSCP. Frames without IP have priority 0.
	DSCP link.PriorityMap `yaml:"dscp"`
	// QueueOf is the egress queue of each priority, GroupOf its ingress priority group.
	QueueOf [8]uint8 `yaml:"queue_of"`
	GroupOf [8]uint8 `yaml:"group_of"`
	Queues  [8]Queue `yaml:"queues"`
	Groups  [8]Group `yaml:"groups"`
	PFC     PFC      `yaml:"pfc"`
	// MTU is the largest IP packet that the port sends, in bytes; longer ones are dropped.
	MTU int `yaml:"mtu"`
	// Limit is what lossy frames may bring all queues of the port to; 0: no such limit, the dynamic thresholds do.
	Limit dcqcn.Bytes `yaml:"limit"`
	// Stuck are queues that are never served, bit i for queue i: a fault.
	Stuck uint8 `yaml:"stuck"`
}

// Queue is one egress queue of a port.
type Queue struct {
	// Weight is the queue's share under DWRR; 0 is strict priority: before all weighted queues, the
	// higher queue first.
	Weight int `yaml:"weight"`
	// Reserved is what the queue may hold of lossy traffic whatever the others hold.
	Reserved dcqcn.Bytes `yaml:"reserved"`
	// Alpha is the dynamic threshold of lossy traffic: what doesn't fit into Reserved must not exceed Alpha times
	// what is left of the shared buffer (Choudhury and Hahne, 1998).
	Alpha Alpha `yaml:"alpha"`
	// LosslessAlpha is the same for lossless traffic in the queue, all of it; 0: no such threshold, as is proper.
	LosslessAlpha Alpha `yaml:"lossless_alpha"`
	// ECN is when the queue marks; nil: never.
	ECN *dcqcn.Marking `yaml:"ecn"`
}

// Group is one ingress priority group of a port.
type Group struct {
	// Lossless groups pause their priorities; the others' frames are dropped where a threshold says so.
	Lossless bool `yaml:"lossless"`
	// Reserved is what a lossless group may hold whatever the others hold.
	Reserved dcqcn.Bytes `yaml:"reserved"`
	// Alpha is the threshold, in shares of what is left of the shared buffer, of what the group holds beyond
	// Reserved: a lossless one's XOFF, where it isn't 0; a lossy one's limit (0: none).
	Alpha Alpha `yaml:"alpha"`
	// XOFF is the threshold where Alpha is 0: bytes beyond Reserved.
	XOFF dcqcn.Bytes `yaml:"xoff"`
	// XONOffset is how far below the XOFF threshold the group's holdings must fall for its pause to end.
	XONOffset dcqcn.Bytes `yaml:"xon_offset"`
	// Headroom takes what comes after XOFF; what exceeds it is dropped. With AutoHeadroom it
	// follows from the port's rate, delay and MTU, and PFC.Response (see func Headroom).
	Headroom     dcqcn.Bytes `yaml:"headroom"`
	AutoHeadroom bool        `yaml:"auto_headroom"`
}

// PFC is how a port pauses and is paused.
type PFC struct {
	// Send are the priorities, bit i for priority i, that the port pauses its peer in, and Obey those
	// in which it lets itself be paused.
	Send uint8 `yaml:"send"`
	Obey uint8 `yaml:"obey"`
	// ObeyPause is whether 802.3x frames stop the port, all priorities.
	ObeyPause bool `yaml:"obey_pause"`
	// SendPause is whether the port pauses its peer by 802.3x frames instead, whichever group asks for it.
	SendPause bool `yaml:"send_pause"`
	// Quanta is what a pause asks for, in 512 bit times, 1 to 65535. It is repeated when half of it is over.
	Quanta uint16 `yaml:"quanta"`
	// Response is how long a peer may take from a pause frame's arrival to obeying it. Automatic headroom allows
	// for it; the devices here take no time.
	Response time.Duration `yaml:"response"`
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
	Detect time.Duration `yaml:"detect"`
	// Restore is for how long the queue must not have been paused for the watchdog to let go.
	Restore time.Duration `yaml:"restore"`
	Action  Action        `yaml:"action"`
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
	Mode Mode `yaml:"mode"`
	// Priorities are those that Mode holds for, bit i for priority i; the others go by ECMP.
	Priorities uint8 `yaml:"priorities"`
	// HashSeed is mixed into the hash; nil: the switch's own. Switches of equal seeds polarise.
	HashSeed *uint64 `yaml:"hash_seed"`
	// FlowletGap is how long a flow must be silent to be sent elsewhere.
	FlowletGap time.Duration `yaml:"flowlet_gap"`
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
