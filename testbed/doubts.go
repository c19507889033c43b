package testbed

import (
	"errors"
	"fmt"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/sim"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
	"github.com/rocebed/rocebed/workloads"
)

// Doubts are what a scenario can have and hardly mean, at their places: thresholds that no queue reaches, headroom that is too small, PFC or ECN in
// priorities where the traffic isn't. They are warnings: validate prints them, and runs record them. want overrides the scenario's backend unless it is
// empty.
func Doubts(s *Scenario, want Backend) strict.Problems {
	if want == "" {
		want = s.Backend
	}
	if want == Auto && kernelKind(s) != "" {
		want = Kernel
	}
	return Choice{Backend: want, Builder: builders[want]}.doubts(s, loop.Dilation(s.Dilation))
}

// doubts are a scenario's on a backend at a dilation; 0: it is not known yet.
func (c Choice) doubts(s *Scenario, d loop.Dilation) strict.Problems {
	var reaction func(*topo.Node) time.Duration
	if c.Builder != nil && c.Builder.Reaction != nil && d != 0 {
		reaction = func(n *topo.Node) time.Duration { return c.Builder.Reaction(n, d) }
	}
	err := s.doc.Locate("", sim.Doubts(s.Plan, &fabric.Settings{NICs: s.NICs, Switches: s.Switches}, s.sends(), reaction))
	ps, _ := errors.AsType[strict.Problems](err)
	return ps
}

// sends is what a scenario's traffic is in. CNPs have DSCPs of their own where there is DCQCN.
func (s *Scenario) sends() (sent sim.Sent) {
	for i := range s.Workloads {
		w := &s.Workloads[i]
		sent.RoCE = append(sent.RoCE, sim.Class{Workload: w.Name, DSCP: workloads.TrafficClass(w) >> 2})
	}
	for _, n := range s.Topology.Hosts() {
		m := s.NICs.Of(n.Name)
		if m.DCQCN == nil {
			continue
		}
		if p, err := m.DCQCN.Params(); err == nil && p != nil {
			sent.Others = append(sent.Others, p.CNPDSCP)
		}
	}
	for i := range s.Faults {
		f := &s.Faults[i]
		switch {
		case f.DSCP != nil:
			sent.Others = append(sent.Others, *f.DSCP)
		case f.Kind == faults.RoCEBurst || f.Kind == faults.IncastBurst:
			sent.Others = append(sent.Others, workloads.TrafficClass(&workloads.Spec{})>>2)
		case f.Kind == faults.UDPTraffic || f.Kind == faults.TCPTraffic:
			sent.Others = append(sent.Others, 0)
		}
		for _, p := range f.DSCPMap {
			sent.Moved = append(sent.Moved, p)
		}
	}
	return sent
}

// doubted is a doubt without its place in a file, for records: these don't depend on where the file was.
func doubted(p *strict.Problem) string { return fmt.Sprintf("%s: %v", p.Path, p.Err) }
