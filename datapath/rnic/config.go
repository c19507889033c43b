package rnic

import (
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// Config is what a device is made of and how it is connected.
type Config struct {
	Name string    // the device's, in errors: "h1:rnic0"
	Loop loop.Loop // the host's
	MAC  roce.MAC
	Addr roce.Addr // of the port, its one GID
	MTU  int       // of the port's IP packets, bytes; the IB MTU is the largest that is 80 bytes below it
	Rate uint64    // of the port, bits a second of fabric time
	Seed uint64    // of what is random, keys included

	Profile    Profile
	PCIe       *PCIe             // what the device shares with others of its host; nil: nothing
	Priorities *link.PriorityMap // of DSCPs; nil: link.DefaultPriorities

	Frames *link.Pool // of the goroutine that runs Loop
	Wire   link.Wire  // takes what the port sends
	// Resolve says where an address is. Packets to one that it doesn't know go nowhere.
	Resolve func(roce.Addr) (Neighbor, bool)

	Trace   Tracer // may be nil
	Phantom bool   // the device can give memory without bytes; its frames never become bytes then
	Bugs    Bugs   // for tests of tests alone
}

// Neighbor is where frames to an address go.
type Neighbor struct {
	MAC roce.MAC
	Dst uint32 // the fabric's number of the port
	// Selective says that the port's device is one of this package's, which understands selective repeat's
	// packets whatever its profile. Where it goes back itself, the other end does too.
	Selective bool
}

var errConfig = errors.New("invalid configuration")

func (c *Config) check() error {
	bad := func(what string) error { return fmt.Errorf("%s: new RNIC: %s: %w", c.Name, what, errConfig) }
	switch {
	case c.Loop == nil, c.Frames == nil, c.Wire == nil, c.Resolve == nil:
		return bad("it needs a loop, a pool of frames, a wire and a resolver")
	case c.Rate == 0:
		return bad("a port without a rate")
	case ibMTU(c.MTU) == 0:
		return bad(fmt.Sprintf("an MTU of %d bytes leaves no room for InfiniBand's smallest, 256, and 80 of headers", c.MTU))
	}
	return nil
}

// headerRoom is what Linux leaves for the headers between an IP packet's MTU and InfiniBand's.
const headerRoom = 80

// ibMTU is the largest path MTU for IP packets of so many bytes, 0 when there is none.
func ibMTU(ip int) int {
	for mtu := 4096; mtu >= 256; mtu /= 2 {
		if mtu+headerRoom <= ip {
			return mtu
		}
	}
	return 0
}
