//go:build linux

package kernel

import (
	"context"
	"errors"
	"strconv"

	"github.com/rocebed/rocebed/testbed/kernel/tc"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/topo"
)

// The slots of a port that metrics are labelled with.
const (
	slotShape = "shape" // the whole port's shaper
	slotMark  = "mark"  // the marker
	slotQueue = "queue" // the port's buffer
	slotDelay = "delay" // the delay line on the cable behind the port
)

// Collect reads every metric of the fabric once.
func (f *Fabric) Collect(ctx context.Context) ([]metrics.Sample, error) {
	c := &collector{f: f}
	lines, err := f.cables.DelayLines()
	c.failed(err)
	for i := range f.Topology().Nodes {
		if err := ctx.Err(); err != nil {
			c.failed(err)
			break
		}
		n := f.nodes[f.Topology().Nodes[i].Name]
		if n.foreign() {
			c.delays(n, lines)
			continue
		}
		c.interfaces(n)
		c.trees(n)
		c.delays(n, lines)
	}
	for _, h := range f.hosts {
		c.counters(h)
		late := h.loop.Stats().Late.Max
		c.add("loop_lateness_max", float64(f.cfg.Dilation.Fabric(late)), h.name)
	}
	c.engine()
	c.shapers()
	c.processors()
	drops, err := linux.SoftnetDrops()
	c.failed(err)
	for cpu, n := range drops {
		c.add("softnet_dropped", float64(n), strconv.Itoa(cpu))
	}
	return c.samples, errors.Join(c.errs...)
}

type collector struct {
	f       *Fabric
	samples []metrics.Sample
	errs    []error
}

func (c *collector) failed(err error) {
	if err != nil {
		c.errs = append(c.errs, err)
	}
}

func (c *collector) add(name string, v float64, labels ...string) {
	c.samples = append(c.samples, metrics.Sample{Name: name, Labels: labels, Value: v})
}

func (c *collector) interfaces(n *node) {
	states, err := linkStates(n.ns)
	c.failed(err)
	for _, l := range n.ns.Links() {
		s, ok := states[l.Index]
		if !ok {
			continue
		}
		for _, m := range []struct {
			name string
			v    uint64
		}{
			{"if_rx_packets", s.stats.rxPackets}, {"if_tx_packets", s.stats.txPackets},
			{"if_rx_bytes", s.stats.rxBytes}, {"if_tx_bytes", s.stats.txBytes},
			{"if_rx_dropped", s.stats.rxDropped}, {"if_tx_dropped", s.stats.txDropped},
			{"if_rx_errors", s.stats.rxErrors}, {"if_tx_errors", s.stats.txErrors},
		} {
			c.add(m.name, float64(m.v), n.name, l.Port)
		}
	}
}

func (c *collector) trees(n *node) {
	trees, err := n.ports.trees()
	c.failed(err)
	for _, l := range n.ns.Links() {
		for _, r := range trees[l.Port] {
			switch r.Spec.Kind() {
			case "htb":
				if r.Class && r.ID == tc.ShaperClass {
					c.qdisc(r.Stats, n.name, l.Port, slotShape)
				}
			case "red":
				c.qdisc(r.Stats, n.name, l.Port, slotMark)
				c.add("ecn_marked", float64(r.Stats.Marked), n.name, l.Port, slotMark)
			case "bfifo":
				c.qdisc(r.Stats, n.name, l.Port, slotQueue)
			}
		}
	}
}

// delays are the delay lines on the cables behind a node's ports.
func (c *collector) delays(n *node, lines map[topo.PortRef]tc.Stats) {
	for _, l := range n.ns.Links() {
		if s, ok := lines[topo.PortRef{Node: n.name, Port: l.Port}]; ok {
			c.qdisc(s, n.name, l.Port, slotDelay)
		}
	}
}

func (c *collector) qdisc(s tc.Stats, labels ...string) {
	c.add("qdisc_sent_packets", float64(s.Packets), labels...)
	c.add("qdisc_sent_bytes", float64(s.Bytes), labels...)
	c.add("qdisc_drops", float64(s.Drops), labels...)
	c.add("qdisc_overlimits", float64(s.Overlimits), labels...)
	c.add("qdisc_requeues", float64(s.Requeues), labels...)
	c.add("qdisc_backlog_packets", float64(s.QueuePackets), labels...)
	c.add("qdisc_backlog_bytes", float64(s.QueueBytes), labels...)
}

// counters are the rxe devices' own. A kernel may have some that the registry doesn't know;
// those are left out.
func (c *collector) counters(h *host) {
	for _, d := range h.devs {
		all, err := h.rdma.Counters(d.device)
		c.failed(err)
		for _, k := range all {
			if m, ok := metrics.Standard.Lookup(k.Name); ok && m.Source == metrics.SourceHW {
				c.add(k.Name, float64(k.Value), d.ref.Node, d.ref.Port)
			}
		}
	}
}
