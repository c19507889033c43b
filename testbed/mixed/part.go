//go:build linux

package mixed

import (
	"sync/atomic"

	"github.com/rocebed/rocebed/testbed/kernel"
	"github.com/rocebed/rocebed/testbed/soft"
	"github.com/rocebed/rocebed/topo"
)

var _ kernel.Foreign = (*part)(nil)

// part is the soft nodes as the kernel's fabric knows them. They are there once that fabric is, and are asked nothing
// before.
type part struct{ nodes atomic.Pointer[soft.Fabric] }

func (p *part) SetCarrier(port topo.PortRef, up bool) error {
	return p.do(func(f *soft.Fabric) error { return f.SetCarrier(port, up) })
}

func (p *part) SetRate(port topo.PortRef, r topo.Rate) error {
	return p.do(func(f *soft.Fabric) error { return f.SetRate(port, r) })
}

func (p *part) Rate(port topo.PortRef) (r topo.Rate, err error) {
	err = p.do(func(f *soft.Fabric) (err error) { r, err = f.Rate(port); return err })
	return r, err
}

func (p *part) Sent(port topo.PortRef) (n uint64, err error) {
	err = p.do(func(f *soft.Fabric) (err error) { n, err = f.Sent(port); return err })
	return n, err
}

func (p *part) SetLink(link int, up bool) error {
	return p.do(func(f *soft.Fabric) error { return f.SetLink(link, up) })
}

func (p *part) do(fn func(*soft.Fabric) error) error {
	if f := p.nodes.Load(); f != nil {
		return fn(f)
	}
	return errEmpty
}
