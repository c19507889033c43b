//go:build linux

package soft

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/vishvananda/netlink"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/silicon"
)

// Collect reads every metric of the fabric once.
func (f *Fabric) Collect(ctx context.Context) ([]metrics.Sample, error) {
	c := &collector{f: f}
	for _, h := range f.hosts {
		if h.halted.Load() { // it answers nobody
			continue
		}
		c.on(ctx, h.loop, func(r *silicon.Readings) { r.Host(h.silicon) })
	}
	for _, n := range f.nodes {
		if s := f.sw[n.name]; s != nil {
			c.on(ctx, n.loop, func(r *silicon.Readings) { r.Switch(n.name, s) })
		}
	}
	for _, n := range f.nodes {
		c.node(n)
	}
	for _, h := range f.away {
		if !h.answers() {
			c.interfaces(h.name)
			continue
		}
		t, err := h.ask(ctx, asked{Do: "collect"})
		c.failed(err)
		if t != nil {
			c.Samples = append(c.Samples, t.Samples...)
		}
		c.interfaces(h.name)
	}
	if f.cfg.Within != nil { // the machine is read with the rest of the fabric
		return c.Samples, errors.Join(c.errs...)
	}
	drops, err := linux.SoftnetDrops()
	c.failed(err)
	for cpu, n := range drops {
		c.add("softnet_dropped", float64(n), strconv.Itoa(cpu))
	}
	return c.Samples, errors.Join(c.errs...)
}

type collector struct {
	f *Fabric
	silicon.Readings
	errs []error
}

// on reads something on its loop. What is read once ctx has ended is nobody's: the loop may still be at it.
func (c *collector) on(ctx context.Context, l *loop.Real, read func(*silicon.Readings)) {
	r := &silicon.Readings{}
	if err := l.Do(ctx, func() { read(r) }); err != nil {
		c.failed(err)
		return
	}
	c.Samples = append(c.Samples, r.Samples...)
}

func (c *collector) failed(err error) {
	if err != nil {
		c.errs = append(c.errs, err)
	}
}

func (c *collector) add(name string, v float64, labels ...string) {
	c.Samples = append(c.Samples, metrics.Sample{Name: name, Labels: labels, Value: v})
}

// node reads how a node keeps up, and its interfaces.
func (c *collector) node(n *node) {
	c.pace(n)
	c.interfaces(n.name)
}

// pace reads how a node keeps up.
func (c *collector) pace(n *node) {
	d := c.f.cfg.Dilation
	c.add("loop_lateness_max", float64(d.Fabric(n.loop.Stats().Late.Max)), n.name)
	for _, p := range n.ports {
		c.add("pacer_lateness_max", float64(d.Fabric(p.counts.late.read().most)), n.name, p.ref.Port)
		c.add("socket_refused", float64(p.counts.unsent.Load()), n.name, p.ref.Port)
		drops, err := p.sock.Drops()
		c.failed(err)
		c.add("socket_dropped", float64(drops), n.name, p.ref.Port)
	}
}

func (c *collector) interfaces(node string) {
	ns := c.f.wiring.Node(node)
	handle, err := ns.Handle()
	if err != nil {
		c.failed(err)
		return
	}
	for _, own := range ns.Links() {
		l, err := handle.LinkByIndex(own.Index)
		if err != nil {
			c.failed(fmt.Errorf("%s:%s: read interface: %w", node, own.Port, err))
			continue
		}
		c.statistics(l.Attrs().Statistics, node, own.Port)
	}
}

func (c *collector) statistics(s *netlink.LinkStatistics, labels ...string) {
	if s == nil {
		return
	}
	for _, m := range []struct {
		name string
		v    uint64
	}{
		{"if_rx_packets", s.RxPackets}, {"if_tx_packets", s.TxPackets}, {"if_rx_bytes", s.RxBytes}, {"if_tx_bytes", s.TxBytes},
		{"if_rx_dropped", s.RxDropped}, {"if_tx_dropped", s.TxDropped}, {"if_rx_errors", s.RxErrors}, {"if_tx_errors", s.TxErrors},
	} {
		c.add(m.name, float64(m.v), labels...)
	}
}
