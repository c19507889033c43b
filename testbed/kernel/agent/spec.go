//go:build linux

package agent

import (
	"net/netip"
	"time"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/testbed/kernel/nldev"
)

// Spec is what an agent is made for. Rates are of fabric time unless they say otherwise.
type Spec struct {
	Dilation loop.Dilation
	Flows    int // that may have a rate of their own, at most
	Nodes    []Node
	Ports    []Port
}

// Node is a namespace with ports.
type Node struct {
	Name string
	NICs bool // it has RDMA devices
}

// Port is a port of the engine.
type Port struct {
	Number   int // in the engine
	Name     string
	Node     int // index
	Index    int // of the interface
	Peer     int // the number of the port at the other end; 0: it is none of the engine's
	MAC      roce.MAC
	PeerMAC  roce.MAC
	WallRate uint64 // bits a second of wall time
	Sends    uint8  // priorities that it pauses its peer in
	NIC      *NIC   // nil: a switch's port, or a NIC without DCQCN
	Watchdog Watchdog
}

// Watchdog finds queues that are paused and never resume, and takes them out of the pause. Times are wall times.
type Watchdog struct {
	Detect  time.Duration // for how long a queue with frames must have been paused; 0: there is no watchdog
	Restore time.Duration // for how long it must not have been paused for the watchdog to let go
	Drop    bool          // what waits and what comes is dropped
	Alert   bool          // nothing but counted
}

// NIC is an RDMA device with DCQCN.
type NIC struct {
	Addr   netip.Addr
	Device nldev.Device
	Line   uint64 // bits a second
	Params dcqcn.Params
}

// Reading is what an agent has done.
type Reading struct {
	Ports    map[int]PortReading // by number
	Reaction ReactionReading
	Events   uint64
	Late     time.Duration // the most that an event waited to be looked at, wall time
}

// PortReading is what an agent did at a port. Times are wall times.
type PortReading struct {
	TxPauses [8]uint64 // pause frames that spoke of the priority
	Began    [8]uint64
	Paused   [8]time.Duration // for how long the peer was kept paused
	Storms   [8]uint64        // that the watchdog found
	Watchdog Watchdog         // in force
	Sends    uint8            // in force
	Faults   Faults           // in force
	Stormed  uint64           // pause frames of Faults.Storm, ever
	NIC      *NICReading
}

// NICReading is a NIC's DCQCN.
type NICReading struct {
	CNPSent, TableFull, Suppressed uint64 // of the notification point
	CNPHandled, CNPIgnored         uint64 // of the reaction point
	RateChanges                    uint64
	CNPsLeftOut                    uint64 // for Faults
	Params                         dcqcn.Params
	Unmapped                       uint64 // marked packets and CNPs for queue pairs that the kernel doesn't list
	NoFlow                         uint64 // CNPs whose flow could not be given a rate, since too many have one
	Known                          int    // queue pairs that had a CNP, of those that there are
	Limited                        int    // queue pairs below line rate now
}

// ReactionReading is how long pauses took, in wall time, from the first frame that found a group's threshold reached to its peer's silence: that is for how long
// frames still came.
type ReactionReading struct {
	Count          uint64
	P50, P999, Max time.Duration
}
