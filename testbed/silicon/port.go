package silicon

import (
	"fmt"
	"slices"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/topo"
)

// Port is one end of a link: a device's port, and the wire that carries away what it sends. All but the names is
// for its node's loop.
type Port struct {
	Ref    topo.PortRef
	Number int // the plan's
	Loop   loop.Loop
	Wire   *Wire
	Link   *topo.Link

	end     end
	device  link.Receiver // takes what comes in
	index   uint16        // of the port there
	down    int           // faults that have the link down
	cutBy   []*cut        // and what they have of it
	lost    uint64        // times that the port lost its carrier
	own     []string
	tap     *tap
	watches []*watch
}

// end is what a port's device lets be done to the port.
type end interface {
	// SetLink says whether the port has a carrier, SetRate how fast its line is, in bits a second of fabric time.
	SetLink(up bool)
	SetRate(rate uint64)
	// Rate is the line's.
	Rate() uint64
}

// NewPort makes an end of a link whose device is in another process. Nothing comes in at it here; end passes on what is done to
// the device's port, and the wire carries what the device has sent.
func NewPort(ref topo.PortRef, number int, l loop.Loop, w *Wire, of *topo.Link, end interface {
	SetLink(up bool)
	SetRate(rate uint64)
	Rate() uint64
}) *Port {
	return &Port{Ref: ref, Number: number, Loop: l, Wire: w, Link: of, end: end}
}

// Receive implements link.Receiver: what the wire from across the link brings.
func (p *Port) Receive(f *link.Frame) {
	if p.tap != nil && p.down == 0 {
		p.tap.received(f, p.Loop.Now())
	}
	if len(p.watches) > 0 && p.down == 0 {
		look(p.watches, f, p.Loop.Now())
	}
	f.Port = p.index
	p.device.Receive(f)
}

// Inlet is where frames that come in at the port go, as port index of what: straight into the device, unless
// something looks at them at the port.
func (p *Port) Inlet() (to link.Receiver, index uint16) {
	if p.tap != nil || len(p.watches) > 0 {
		return p, p.index
	}
	return p.device, p.index
}

// SetRate changes the rate of the port's line, in bits a second of fabric time.
func (p *Port) SetRate(rate uint64) { p.end.SetRate(rate) }

// Rate is the line's.
func (p *Port) Rate() uint64 { return p.end.Rate() }

// SetCarrier takes the carrier from the port, or gives it back, for one fault of perhaps several.
func (p *Port) SetCarrier(up bool) {
	switch {
	case !up:
		p.Wire.Cut()
		if p.down++; p.down == 1 {
			p.lost++
			p.end.SetLink(false)
		}
	default:
		p.Wire.Mend()
		if p.down--; p.down == 0 {
			p.end.SetLink(true)
		}
	}
}

// mendedBy forgets that a fault had the link down.
func (p *Port) mendedBy(fault *cut) {
	if i := slices.Index(p.cutBy, fault); i >= 0 {
		p.cutBy = slices.Delete(p.cutBy, i, i+1)
	}
}

// clean says what a healed fault has left on the port.
func (p *Port) clean(id string) error {
	if _, _, _, there := p.Wire.Find(id); there {
		return fmt.Errorf("%s: %s is still on the link", p.Ref, id)
	}
	return nil
}
