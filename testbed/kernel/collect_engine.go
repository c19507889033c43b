//go:build linux

package kernel

import (
	"fmt"
	"strconv"
	"time"

	"github.com/rocebed/rocebed/testbed/kernel/agent"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/topo"
)

// byCustom is the priority that RoCE goes in by custom: it is always read, so that what stays zero there can be told from what
// nobody measures.
const byCustom = 3

// engine reads the engine's ports and their agent, under the names that software nodes use.
func (c *collector) engine() {
	f := c.f
	if f.engine == nil {
		return
	}
	var told agent.Reading
	if f.agentGone() == nil {
		var err error
		told, err = f.agent.Read()
		c.failed(err)
	}
	for i := range f.Topology().Nodes {
		n := &f.Topology().Nodes[i]
		if !f.cfg.made(n) {
			continue
		}
		if n.Role == topo.Switch {
			m, err := f.engine.Memory(i)
			c.failed(err)
			c.add("buffer_used_bytes", float64(m.Total), n.Name)
			c.add("buffer_high_water_bytes", float64(m.HighWater), n.Name)
		}
		for _, p := range f.Plan().Ports(n.Name) {
			r, err := f.engine.Read(f.numbers[p.Ref])
			c.failed(err)
			t := told.Ports[f.numbers[p.Ref]]
			c.enginePort(n, p.Ref, &r, &t)
		}
	}
	c.add("pause_reaction_p999", float64(f.cfg.Dilation.Fabric(told.Reaction.P999)))
	c.add("pause_reaction_p50", float64(f.cfg.Dilation.Fabric(told.Reaction.P50)))
}

func (c *collector) enginePort(n *topo.Node, ref topo.PortRef, r *engine.Reading, t *agent.PortReading) {
	fabric := func(wall time.Duration) float64 { return float64(c.f.cfg.Dilation.Fabric(wall)) }
	var headroomDrops, queueDrops, stormDrops uint64
	for i := range r.Queues {
		q, g, number := &r.Queues[i], &r.Groups[i], strconv.Itoa(i)
		headroomDrops, queueDrops, stormDrops = headroomDrops+g.HeadroomDrops, queueDrops+q.Drops, stormDrops+q.StormDrops
		if n.Role == topo.Switch && (i == byCustom || q.TxFrames > 0 || q.Drops > 0 || q.HighWater > 0) {
			c.add("queue_tx_frames", float64(q.TxFrames), ref.Node, ref.Port, number)
			c.add("queue_tx_bytes", float64(q.TxBytes), ref.Node, ref.Port, number)
			c.add("queue_drops", float64(q.Drops), ref.Node, ref.Port, number)
			c.add("queue_depth_bytes", float64(q.Bytes), ref.Node, ref.Port, number)
			c.add("queue_high_water_bytes", float64(q.HighWater), ref.Node, ref.Port, number)
			c.add("ecn_marked", float64(q.Marked), ref.Node, ref.Port, "queue"+number)
		}
		if i != byCustom && g.HeadroomHigh == 0 && g.HeadroomDrops == 0 && g.XOFFs == 0 && q.RxPauses == 0 && t.TxPauses[i]+g.TxPauses == 0 {
			continue
		}
		if n.Role == topo.Switch {
			c.add("headroom_high_water_bytes", float64(g.HeadroomHigh), ref.Node, ref.Port, number)
			c.add("headroom_drops", float64(g.HeadroomDrops), ref.Node, ref.Port, number)
			c.add("pfc_xoffs", float64(g.XOFFs), ref.Node, ref.Port, number)
			c.add("pfc_storms", float64(t.Storms[i]), ref.Node, ref.Port, number)
		}
		c.add("rx_prio_pause", float64(q.RxPauses), ref.Node, ref.Port, number)
		c.add("tx_prio_pause", float64(t.TxPauses[i]+g.TxPauses), ref.Node, ref.Port, number)
		c.add("rx_prio_pause_duration", fabric(q.PausedTime), ref.Node, ref.Port, number)
		c.add("tx_prio_pause_duration", fabric(t.Paused[i]), ref.Node, ref.Port, number)
	}
	if n.Role == topo.Switch {
		c.add("port_drops", float64(queueDrops), ref.Node, ref.Port, "egress")
		for why, drops := range map[string]uint64{"headroom": headroomDrops, "storm": stormDrops} {
			if drops > 0 {
				c.add("port_drops", float64(drops), ref.Node, ref.Port, why)
			}
		}
		return
	}
	if d := t.NIC; d != nil {
		c.add("np_ecn_marked_roce_packets", float64(r.Arrived.Marked), ref.Node, ref.Port)
		c.add("np_cnp_sent", float64(d.CNPSent), ref.Node, ref.Port)
		c.add("rp_cnp_handled", float64(d.CNPHandled), ref.Node, ref.Port)
		c.add("rp_cnp_ignored", float64(d.CNPIgnored), ref.Node, ref.Port)
		if d.NoFlow > 0 {
			c.f.warn(fmt.Sprintf("%s: more than %d queue pairs were below line rate at once: those beyond went on at line rate", ref, c.f.cfg.flows))
		}
		c.add("roce_unmapped", float64(d.Unmapped), ref.Node, ref.Port)
	}
}

// engineKeptUp says what of the engine was not as a run takes it to be.
func (f *Fabric) engineKeptUp() (errs []error) {
	if f.engine == nil {
		return nil
	}
	if err := f.agentGone(); err != nil {
		return []error{err}
	}
	told, err := f.agent.Read()
	errs = append(errs, err)
	if r, most := told.Reaction, f.cfg.heldReaction(); r.Count >= leastTimers && r.P999 > most {
		errs = append(errs, newReactionError(r.P999, r.Count, most))
	}
	if n, err := f.engine.EventsLost(); err != nil || n > 0 {
		errs = append(errs, lostEvents(n, err))
	}
	for ref, number := range f.numbers {
		r, err := f.engine.Read(number)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, f.enginePortKept(ref, &r)...)
	}
	return errs
}

func newReactionError(p999 time.Duration, n uint64, most time.Duration) error {
	return fmt.Errorf("1 in 1000 of %d pauses took more than %v of wall time from the threshold to the peer's silence, and headroom is for %v", n, p999.Round(time.Microsecond), most.Round(time.Microsecond))
}

func lostEvents(n uint64, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%d events found the ring to the agent full", n)
}

// enginePortKept says what a port has lost that nothing but this machine is to blame for.
func (f *Fabric) enginePortKept(ref topo.PortRef, r *engine.Reading) (errs []error) {
	if r.SlotDrops > 0 {
		errs = append(errs, fmt.Errorf("%s: %d packets found all places taken", ref, r.SlotDrops))
	}
	if f.Plan().Node(ref.Node).Role != topo.Host {
		return errs
	}
	var drops uint64
	for i := range r.Queues {
		drops += r.Queues[i].Drops
	}
	if drops > 0 {
		errs = append(errs, fmt.Errorf("%s: the host's own queue dropped %d packets", ref, drops))
	}
	return errs
}
