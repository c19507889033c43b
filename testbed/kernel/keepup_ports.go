//go:build linux

package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/topo"
)

// What a port gives of its rate while packets wait for it: below goodShare is a warning; below leastShare, without the worst
// interval, a failure. On a quiet machine it is 0.97 to 1 (docs/dilation.md has the measurements). Nothing is said of
// ports that were watched for less than leastBusy of wall time and leastFrames of their MTU: the token bucket is noise in that. A
// failure takes as much of sending, not of stalls. All ports together are judged like one, since where everything is late
// queues are short and many.
const (
	goodShare   = 0.9
	leastShare  = 0.75
	leastBusy   = 200 * time.Millisecond
	leastFrames = 100
	mostNamed   = 4
)

// portShare is how a port has done.
type portShare struct {
	name  string
	rate  topo.Rate // of fabric time; 0 for all ports together
	least time.Duration
	tally shaperTally
}

// judge splits what was watched for long enough into too little and worth a warning, the worst first.
func judge(all []portShare) (late, slow []portShare) {
	total := portShare{name: "all ports together", least: 2 * leastBusy}
	for _, p := range all {
		total.tally.sent += p.tally.sent
		total.tally.lost += p.tally.lost
		total.tally.most += p.tally.most // a stall of the machine is one of all ports
	}
	for _, p := range append(slices.Clone(all), total) {
		least := max(p.least, leastBusy)
		switch {
		case p.tally.sent >= least && p.tally.usual() < leastShare:
			late = append(late, p)
		case p.tally.busy() >= least && p.tally.share() < goodShare:
			slow = append(slow, p)
		}
	}
	worst := func(a, b portShare) int { return cmp.Compare(a.tally.share(), b.tally.share()) }
	slices.SortStableFunc(late, worst)
	slices.SortStableFunc(slow, worst)
	return late, slow
}

// carried says how much of its rate the port gave.
func (p portShare) carried(d loop.Dilation) string {
	share := p.tally.share()
	of := ""
	if p.rate > 0 {
		of = fmt.Sprintf("%.1f of %.4g Gb/s, ", share*float64(p.rate)/1e9, float64(p.rate)/1e9)
	}
	return fmt.Sprintf("%s: carried %s%.0f%% of the line rate, while packets waited (watched for %v)",
		p.name, of, share*100, d.Fabric(p.tally.busy()).Round(time.Microsecond))
}

// shares are all ports', in order.
func (f *Fabric) shares() []portShare {
	var all []portShare
	f.eachPort(func(ref topo.PortRef, t *shaperTally) {
		l := f.Plan().Link(ref)
		all = append(all, portShare{name: ref.String(), rate: l.Rate, least: t.wire(leastFrames*uint64(l.MTU), leastFrames), tally: *t})
	})
	return all
}

// slowPorts are ports whose shapers gave too little of their rate.
func (f *Fabric) slowPorts() error {
	if f.watch == nil {
		return nil
	}
	var errs []error
	late, _ := judge(f.shares())
	for i, p := range late {
		if i == mostNamed {
			errs = append(errs, fmt.Errorf("and %d more ports", len(late)-i))
			break
		}
		errs = append(errs, fmt.Errorf("%s; at least %.0f%% are needed", p.carried(f.cfg.Dilation), leastShare*100))
	}
	return errors.Join(errs...)
}

// slowWarning is about ports that gave less of their rate than they do on a quiet machine; empty: none.
func (f *Fabric) slowWarning() string {
	if f.watch == nil {
		return ""
	}
	_, slow := judge(f.shares())
	if len(slow) == 0 {
		return ""
	}
	more := ""
	if n := len(slow) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more like it", n)
	}
	return fmt.Sprintf("the machine was late at times: %s%s. Rates may be too low by as much", slow[0].carried(f.cfg.Dilation), more)
}

// eachPort goes through the ports in order.
func (f *Fabric) eachPort(do func(topo.PortRef, *shaperTally)) {
	for i := range f.Topology().Nodes {
		if f.nodes[f.Topology().Nodes[i].Name].foreign() {
			continue
		}
		for _, p := range f.Plan().Ports(f.Topology().Nodes[i].Name) {
			t := f.tally(p.Ref)
			do(p.Ref, &t)
		}
	}
}

// tally is how a port has done. The engine knows itself what of its line's time it lost.
func (f *Fabric) tally(ref topo.PortRef) shaperTally {
	if f.engine == nil {
		return f.watch.seen(ref)
	}
	t := shaperTally{rate: wallRate(f.Plan().Link(ref).Rate, f.cfg.Dilation)}
	r, err := f.engine.Read(f.numbers[ref])
	if err != nil { // KeepUp says so
		return t
	}
	var base engine.Reading
	if all := f.portBase.Load(); all != nil {
		base = (*all)[ref]
	}
	bytes, frames := r.Sent()
	wasBytes, wasFrames := base.Sent()
	t.sent, t.lost = t.wire(bytes-wasBytes, frames-wasFrames), r.Late-base.Late
	return t
}

// shapers are the metrics of what was watched.
func (c *collector) shapers() {
	f := c.f
	if f.watch == nil {
		return
	}
	f.eachPort(func(ref topo.PortRef, t *shaperTally) {
		c.add("shaper_busy_time", float64(f.cfg.Dilation.Fabric(t.busy())), ref.Node, ref.Port)
		c.add("shaper_share", t.share(), ref.Node, ref.Port)
	})
	readings, spent, err := f.watch.effort()
	c.failed(err)
	c.add("shaper_readings", float64(readings))
	c.add("shaper_reading_time", float64(f.cfg.Dilation.Fabric(spent)))
}
