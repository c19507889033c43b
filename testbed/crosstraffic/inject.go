package crosstraffic

import (
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads"
)

// Injector makes the traffic on a living fabric. Its methods may be called from any goroutine, in virtual time on the control
// loop. Callbacks come on a host's loop, or on a goroutine of their own.
type Injector struct {
	fab    fabric.Fabric
	ground Ground
	nics   map[topo.PortRef]fabric.NIC
	// patience is how long what is outstanding may take to complete when a fault heals, fabric time; limit is how long one verbs
	// call may.
	patience, limit time.Duration
	lookAhead       time.Duration
}

var _ fabric.Injector = (*Injector)(nil)

// Wall times in real time, fabric times in virtual time, which no machine makes longer.
const (
	patience        = 3 * time.Second
	patienceVirtual = 50 * time.Millisecond
	limit           = 15 * time.Second
	limitVirtual    = time.Second
)

// New makes the injector of a fabric whose run has a seed.
func New(fab fabric.Fabric, seed uint64) *Injector {
	in := &Injector{
		fab: fab, nics: map[topo.PortRef]fabric.NIC{}, ground: Ground{Plan: fab.Plan(), Seed: seed},
		patience: fab.Dilation().Fabric(patience), limit: fab.Dilation().Fabric(limit),
	}
	if v, ok := fab.(fabric.Virtual); ok {
		in.ground.Virtual, in.lookAhead = true, v.LookAhead()
		in.patience, in.limit = patienceVirtual, limitVirtual
	}
	for _, h := range fab.Hosts() {
		for _, n := range h.NICs() {
			in.nics[n.Port] = n
		}
	}
	return in
}

// Check implements fabric.Injector.
func (in *Injector) Check(spec faults.Spec) error { return Check(spec, in.ground) }

// Apply implements fabric.Injector. The fault is applied when its streams have begun, or on an error not at all.
func (in *Injector) Apply(spec faults.Spec, done func(fabric.Applied, error)) {
	err := Check(spec, in.ground)
	if err != nil {
		in.answer(func() { done(nil, named(spec.Name, "apply", err)) })
		return
	}
	pairs, _ := in.ground.pairs(&spec)
	switch spec.Kind {
	case faults.RoCEBurst, faults.IncastBurst:
		in.burst(&spec, pairs, done)
	case faults.UDPTraffic:
		if in.ground.Virtual {
			in.frames(&spec, pairs, done)
			return
		}
		in.sockets(&spec, pairs, done)
	default:
		in.sockets(&spec, pairs, done)
	}
}

// answer calls back later: who asks may hold what the callback needs.
func (in *Injector) answer(fn func()) {
	if v, ok := in.fab.(fabric.Virtual); ok {
		v.Control().Post(fn)
		return
	}
	go fn()
}

// config is that of an engine of the NICs that some pairs are made of.
func (in *Injector) config(pairs []pair) workloads.Config {
	cfg := workloads.Config{Topology: in.ground.Plan.Topology, Seed: in.ground.Seed, LookAhead: in.lookAhead, ControlTimeout: in.limit, IgnoreCNPs: true}
	seen := map[topo.PortRef]bool{}
	for _, p := range pairs {
		for _, ref := range []topo.PortRef{p.from, p.to} {
			if n, ok := in.nics[ref]; ok && !seen[ref] {
				seen[ref] = true
				cfg.NICs = append(cfg.NICs, workloads.NIC{Port: n.Port, Rail: n.Rail, Device: n.Device, GIDIndex: n.GIDIndex, GID: n.GID})
			}
		}
	}
	return cfg
}

// control is the loop that a fault's own state lives on.
func control(cfg *workloads.Config) loop.Loop { return cfg.NICs[0].Device.Loop() }
