//go:build linux

package soft

import (
	"context"
	"fmt"

	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/topo"
)

// What the rest of a fabric tells soft nodes that are a part of it.

// SetCarrier tells a port that it loses its carrier now, or has it again. Once it has returned nothing is sent any more.
func (f *Fabric) SetCarrier(ref topo.PortRef, up bool) error {
	return f.at(ref, func(p *port, s *silicon.Port) {
		p.dark = !up
		s.SetCarrier(up)
	})
}

// SetRate changes the rate of a port's line, in fabric time.
func (f *Fabric) SetRate(ref topo.PortRef, r topo.Rate) error {
	return f.at(ref, func(_ *port, s *silicon.Port) { s.SetRate(uint64(r)) })
}

// Rate is the rate of a port's line.
func (f *Fabric) Rate(ref topo.PortRef) (r topo.Rate, err error) {
	err = f.at(ref, func(_ *port, s *silicon.Port) { r = topo.Rate(s.Rate()) })
	return r, err
}

// Sent is how many frames a port's device has sent.
func (f *Fabric) Sent(ref topo.PortRef) (n uint64, err error) {
	err = f.at(ref, func(_ *port, s *silicon.Port) { n = s.Wire.Passed() })
	return n, err
}

// SetLink tells the switches' routing that a link is down, or up again.
func (f *Fabric) SetLink(link int, up bool) error {
	return f.control.Do(context.Background(), func() { f.routing.SetLink(link, up) })
}

// at runs fn on the loop of a port's node.
func (f *Fabric) at(ref topo.PortRef, fn func(*port, *silicon.Port)) error {
	n, number := f.byName[ref.Node], f.cfg.Plan.PortNumber(ref)
	if n == nil || number < 0 {
		return fmt.Errorf("%s: no soft node has such a port", ref)
	}
	return n.loop.Do(context.Background(), func() {
		for _, p := range n.ports {
			if p.ref == ref {
				fn(p, f.ports[number])
			}
		}
	})
}
