package packet

import (
	"time"

	"github.com/rocebed/rocebed/topo"
)

// Event is what is done to some packets. All events of a fault look at every packet, in their order, and all that match act,
// until one drops it: those behind it don't see the packet any more.
type Event struct {
	Match Match `yaml:"match"` // absent: every RoCE packet
	Do    Do    `yaml:"do,required"`
}

// Match names packets. A key that isn't given lets all pass.
//
// First come the keys that say something of a packet alone. A packet that passes them is counted by the event (from 1 on),
// at each place of the fault apart; the last three keys choose by that number.
type Match struct {
	// Workload is the connection's workload, a name or a glob; QP its number in the workload (a flow's index in the record), or
	// without a workload its number among all, from 0 in the order of the scenario. From and To are the connection's ends,
	// "h1", "h1:eth0" or globs: From is the one that the workload calls so, whatever the data's direction.
	Workload string `yaml:"workload"`
	QP       Set    `yaml:"qp"`
	From     string `yaml:"from"`
	To       string `yaml:"to"`
	// Direction is along the connection: forward is from From to To. Both where empty.
	Direction Way `yaml:"direction"`

	// PSN is relative to the first PSN of the queue pair whose PSN it is: a request's sender, a response's receiver. CNPs have none.
	PSN Set `yaml:"psn"`
	// Iteration is which pass of its PSN the packet is, from 1 on: requests, data of responses, ACKs and NAKs are counted apart, in each
	// direction.
	Iteration Set `yaml:"iteration"`
	// Round counts like Lumina: it begins at 1 with a message, and a packet whose PSN isn't the next one begins a new round.
	Round Set `yaml:"round"`

	// Class is what the packet is; one of them is enough. Message is its place in its message.
	Class   Classes `yaml:"class"`
	Message Parts   `yaml:"message"`
	DSCP    Set     `yaml:"dscp"`
	ECN     ECNs    `yaml:"ecn"`

	// Ordinal are the numbers that are hit; Every hits the nth, 2nth and so on; Probability draws for each.
	Ordinal     Set           `yaml:"ordinal"`
	Every       int           `yaml:"every,nonzero"`
	Probability topo.Fraction `yaml:"probability,nonzero"`
}

// Way is a direction along a connection.
type Way string

// The ways. The empty way is both.
const (
	Forward Way = "forward" // from the workload's From to its To
	Reverse Way = "reverse"
)

// Verb is what is done to a packet.
type Verb string

// The verbs, with what they take.
const (
	Drop      Verb = "drop"
	Corrupt   Verb = "corrupt"   // payload (default), header or icrc: bits flip, and the ICRC no longer fits
	MarkCE    Verb = "mark-ce"   // the ECN field becomes CE
	ClearECT  Verb = "clear-ect" // the ECN field becomes Not-ECT
	SetDSCP   Verb = "set-dscp"  // 0 to 63
	Duplicate Verb = "duplicate" // how many copies follow it; default 1
	Delay     Verb = "delay"     // how much later it goes on; what comes behind it may overtake it
	Hold      Verb = "hold"      // until so many packets of its connection and direction have overtaken it, and perhaps no longer than a time
	Truncate  Verb = "truncate"  // so many bytes of the frame are left, and its headers still say more
)

// Action is a verb with what it takes. It is written in one line: "drop", "corrupt icrc", "set-dscp 8", "delay 20us", "hold 3",
// "hold 3 1ms", "truncate 64", "duplicate 2".
type Action struct {
	Verb Verb
	Part Part          // corrupt
	N    int           // set-dscp, duplicate, hold, truncate
	Time time.Duration // delay; hold: at most
}

// Do is what is done to a packet, in whatever order it is written: one action, or a list of them.
type Do []Action

// Part is a part of a packet.
type Part string

// The parts that can be damaged.
const (
	Payload Part = "payload" // one bit of what the packet carries; a packet that carries nothing loses one of its BTH
	Header  Part = "header"  // one bit of the transport headers, BTH and extensions
	ICRC    Part = "icrc"    // one bit of the ICRC
)

// Limits of what an event can say.
const (
	MaxHold      = 256       // packets
	MaxCopies    = 8         // of one packet
	MinTruncate  = 34        // Ethernet's and IPv4's headers
	MaxIteration = 31        // passes that can be told apart; a range may reach beyond, for ever
	MaxRanges    = 64        // of one set
	MaxEvents    = 4096      // of one fault
	MaxPSN       = 1<<24 - 1 // as in roce.PSNMask
)
