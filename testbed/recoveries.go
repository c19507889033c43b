package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/testbed/analysis"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/topo"
)

// shownRecoveries is how many recoveries of a fault the summary has. The record's own file has all.
const shownRecoveries = 100

// lossWatch looks at what leaves a port, and what comes back there, while a fault drops packets by name on the link behind it.
type lossWatch struct {
	faults []*oneFault
	from   topo.PortRef
	mac    topo.MAC

	mu     sync.Mutex // in real time the two directions may come from two goroutines
	passed []analysis.Passed
	missed bool
	view   roce.View
}

// watchLosses finds the ports behind which faults drop packets by name.
func (t *traffic) watchLosses() {
	scope := faults.Scope{Topology: t.r.s.Topology, Plan: t.r.s.Plan, Seed: t.r.s.Seed}
	for _, f := range t.faults.all {
		if f.spec.Kind != faults.Packets || !drops(&f.spec) {
			continue
		}
		targets, err := faults.Aim(&f.spec, scope)
		if err != nil {
			continue // the injector says so, and louder
		}
		for _, target := range targets {
			planned, _ := t.r.s.Plan.Port(target.Port)
			if target.Direction != faults.Ingress {
				t.watchLoss(f, target.Port)
			}
			if target.Direction != faults.Egress {
				t.watchLoss(f, planned.Peer)
			}
		}
	}
}

func (t *traffic) watchLoss(f *oneFault, from topo.PortRef) {
	at := slices.IndexFunc(t.lost, func(w *lossWatch) bool { return w.from == from })
	if at < 0 {
		planned, _ := t.r.s.Plan.Port(from)
		at = len(t.lost)
		t.lost = append(t.lost, &lossWatch{from: from, mac: planned.MAC})
	}
	t.lost[at].faults = append(t.lost[at].faults, f)
}

func drops(s *faults.Spec) bool {
	return slices.ContainsFunc(s.PacketEvents(), func(e packet.Event) bool { return e.Do.Has(packet.Drop) })
}

// captureLosses begins to look, where no capture that was asked for does it, too.
func (t *traffic) captureLosses(ctx context.Context) (stops []func()) {
	if d, ok := t.fab.(fabric.Departures); ok {
		return t.departing(d)
	}
	for _, w := range t.lost {
		if slices.Contains(t.r.opt.Captures, w.from) { // shared
			continue
		}
		c, ok := t.fab.(fabric.Capturer)
		if !ok {
			t.unseen(errors.New("this backend can't capture"), w)
			continue
		}
		end, err := c.Capture(ctx, w.from, w)
		if err != nil {
			t.unseen(err, w)
			continue
		}
		stops = append(stops, func() {
			_, lost, err := end()
			if err == nil && lost > 0 {
				err = fmt.Errorf("%d packets passed that the capture missed", lost)
			}
			t.unseen(err, w)
		})
	}
	return stops
}

// departing looks at both ends of the links: what comes back to a port is what leaves the other end, but for what a fault takes of it.
func (t *traffic) departing(d fabric.Departures) (stops []func()) {
	all := map[topo.PortRef]several{}
	var order []topo.PortRef
	for _, w := range t.lost {
		planned, _ := t.r.s.Plan.Port(w.from)
		for _, p := range []topo.PortRef{w.from, planned.Peer} {
			if all[p] == nil {
				order = append(order, p)
			}
			all[p] = append(all[p], w)
		}
	}
	for _, p := range order {
		end, err := d.Departing(p, all[p])
		if err != nil {
			t.unseen(err, all[p]...)
			continue
		}
		stops = append(stops, func() { t.unseen(end(), all[p]...) })
	}
	return stops
}

// unseen notes that not all was seen.
func (t *traffic) unseen(err error, all ...*lossWatch) {
	for _, w := range all {
		if err != nil && !w.missed {
			w.missed = true
			t.r.warning(fmt.Sprintf("how packets were recovered that were lost behind %s is not known: %v", w.from, err))
		}
	}
}

// several look at one port.
type several []*lossWatch

// Packet implements fabric.PacketSink.
func (s several) Packet(at loop.Time, data []byte, length int) (err error) {
	for _, w := range s {
		err = errors.Join(err, w.Packet(at, data, length))
	}
	return err
}

// shared gives what a capture takes to whoever looks for losses there, too.
func (t *traffic) shared(port topo.PortRef, sink fabric.PacketSink) fabric.PacketSink {
	if _, ok := t.fab.(fabric.Departures); ok {
		return sink
	}
	for _, w := range t.lost {
		if w.from == port {
			return both{sink, w}
		}
	}
	return sink
}

type both struct{ a, b fabric.PacketSink }

// Packet implements fabric.PacketSink.
func (s both) Packet(at loop.Time, data []byte, length int) error {
	return errors.Join(s.a.Packet(at, data, length), s.b.Packet(at, data, length))
}

// Packet implements fabric.PacketSink.
func (w *lossWatch) Packet(at loop.Time, data []byte, _ int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.view.Parse(data) != nil || w.view.Kind() != roce.KindRoCE {
		return nil
	}
	facts, _ := packet.Of(&w.view)
	w.passed = append(w.passed, analysis.Passed{At: time.Duration(at), Leaves: bytes.Equal(data[6:12], w.mac[:]), Facts: facts})
	return nil
}

// recoveries writes what became of the packets that were dropped by name. It is called when the fabric's faults are over.
func (t *traffic) recoveries() {
	if len(t.lost) == 0 {
		return
	}
	found := map[string][]record.Recovery{}
	hits := map[string]uint64{}
	for _, w := range t.lost {
		slices.SortStableFunc(w.passed, func(a, b analysis.Passed) int { return int(a.At - b.At) })
		for _, f := range w.faults {
			if w.missed {
				continue
			}
			all, n, err := t.recovered(w, f)
			if err != nil {
				t.r.warning(fmt.Sprintf("recoveries of %s: %v", f.spec.Name, err))
				continue
			}
			found[f.spec.Name] = append(found[f.spec.Name], all...)
			hits[f.spec.Name] += n
		}
	}
	list := []record.Recovery{}
	for i := range t.faultResults {
		f := &t.faultResults[i]
		all, looked := found[f.Name]
		if !looked {
			continue
		}
		slices.SortStableFunc(all, func(a, b record.Recovery) int { return int(a.Lost - b.Lost) })
		f.Recoveries = all[:min(len(all), shownRecoveries)]
		list = append(list, all...)
		if n := hits[f.Name]; n != uint64(f.Hits) {
			t.r.warning(fmt.Sprintf("recoveries of %s: by what passed its ports %d packets were hit, and %d were counted: it is not sure which", f.Name, n, f.Hits))
		}
	}
	if err := t.r.rec.PutJSON(record.RecoveriesFile, list); err != nil {
		t.r.problem("recoveries: %v", err)
	}
}

// recovered runs a fault's events again over what passed a port. A strike is in force from some moment between when it was asked for and when that was answered: packets tell which.
func (t *traffic) recovered(w *lossWatch, f *oneFault) ([]record.Recovery, uint64, error) {
	prog, err := packet.Compile(f.spec.PacketEvents(), faults.Seed(t.r.s.Seed, f.spec.Name, w.from.String()))
	if err != nil {
		return nil, 0, err
	}
	run := func(from func(strike) time.Duration) ([]record.Recovery, uint64) {
		s := analysis.Struck{Program: prog, Connections: t.known, Timeouts: map[string]time.Duration{}}
		for i := range t.r.s.Workloads {
			w := &t.r.s.Workloads[i]
			s.Timeouts[w.Name] = w.AckTimeout()
		}
		for _, one := range f.strikes {
			span := analysis.Span{From: time.Duration(t.zero) + from(one), To: faults.Forever}
			if one.healed != faults.Forever {
				span.To = time.Duration(t.zero) + one.healed
			}
			s.Force = append(s.Force, span)
		}
		return analysis.Recoveries(w.passed, s)
	}
	all, hits := run(func(s strike) time.Duration { return s.asked })
	if hits != uint64(f.result.Hits) {
		if later, n := run(func(s strike) time.Duration { return s.applied }); n == uint64(f.result.Hits) {
			all, hits = later, n
		}
	}
	for i := range all {
		all[i].Fault, all[i].At = f.spec.Name, w.from.String()
		all[i].Lost -= time.Duration(t.zero)
	}
	return all, hits, nil
}
