package asic

import (
	"fmt"
	"slices"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// Config is what a switch is built of and doesn't change: its place in the fabric. All fields
// but Resolve and Observer are needed.
type Config struct {
	Name   string // the node's, for errors
	Loop   loop.Loop
	Seed   uint64 // of this node: marks, random spray, and the hash where Settings gives none
	Frames *link.Pool
	Ports  []PortConfig
	Routes Routes
	// Settings is the initial state of all knobs; see DefaultSettings.
	Settings Settings
	// Resolve is the fabric's number of the port that has an address, link.NoDst where none has. Who carries no
	// ordinary IP leaves it nil; then ICMP errors go back where the packet came from.
	Resolve func(roce.Addr) uint32
	// Observer is told of drops, pauses and storms; nil: nobody.
	Observer Observer
}

// PortConfig is one port and its link.
type PortConfig struct {
	Name    string
	Number  uint32    // the fabric's number of this port: frames with that Dst are for the switch itself; link.NoDst: none
	MAC     roce.MAC  // the port's own
	PeerMAC roce.MAC  // the far end's: where byte-form frames are sent to
	Addr    roce.Addr // the port's own
	Rate    uint64    // bits a second of fabric time, above 0
	// Delay is the link's propagation delay. Automatic headroom follows from it and the rate.
	Delay loop.Duration
	Wire  link.Wire
}

// maxPorts and maxSets are what a route's two bytes hold.
const (
	maxPorts = 1 << 14
	maxSets  = 1 << 14
)

// New makes a switch whose links are all up.
func New(c Config) (*Switch, error) {
	switch {
	case len(c.Ports) == 0 || len(c.Ports) > maxPorts:
		return nil, fmt.Errorf("%s: a switch has 1 to %d ports, not %d", c.Name, maxPorts, len(c.Ports))
	case c.Loop == nil || c.Frames == nil:
		return nil, fmt.Errorf("%s: a switch needs a loop and a pool of frames", c.Name)
	}
	s := &Switch{
		name: c.Name, loop: c.Loop, frames: c.Frames, resolve: c.Resolve, observer: c.Observer,
		ports: make([]port, len(c.Ports)), config: slices.Clone(c.Ports), on: true,
	}
	s.sampler.timer.Fire = s.sample
	s.memory.sw, s.memory.resumeAt = s, -1
	s.seed(c.Seed)
	for i := range c.Ports {
		pc := &c.Ports[i]
		if pc.Rate == 0 || pc.Wire == nil {
			return nil, fmt.Errorf("%s:%s: a port needs a rate above 0 and a wire", c.Name, pc.Name)
		}
		s.ports[i].init(s, i, pc)
	}
	if err := s.Apply(c.Settings); err != nil {
		return nil, err
	}
	if err := s.SetRoutes(c.Routes); err != nil {
		return nil, err
	}
	return s, nil
}

// frameLen is the Len of the largest frame that carries an IP packet of mtu bytes.
func frameLen(mtu int) int64 { return int64(mtu) + roce.EthernetLen + roce.VLANLen }

// Headroom is what a lossless priority group of a port needs beyond its XOFF threshold so that nothing is
// dropped, in bytes of frames, for a link of a rate in bits a second with a propagation delay, frames that
// carry up to mtu bytes of IP, and a peer that stops within response of a pause frame's arrival.
//
// The frame that doesn't fit below the threshold is the first that stands in the headroom (M). The pause frame waits for
// the frame on the line (M) and for pause frames of the other seven priorities, takes its own time and the
// delay; a frame that the peer has begun by then comes still (M); and what the peer sent in the
// meantime, delay there included, is on its way (compare 802.1Q annex N, "Buffer requirements for PFC"):
//
//	3M + 8·84 + rate·(2·delay + response)
func Headroom(rate uint64, delay, response loop.Duration, mtu int) dcqcn.Bytes {
	m := frameLen(mtu) + link.Overhead
	flight := float64(2*delay+response) * float64(rate) / 8e9
	return dcqcn.Bytes(3*m + 8*(link.MinLen+link.Overhead) + int64(flight) + 1)
}
