package hostfault

import (
	"fmt"
	"slices"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// seat is a host to its faults. It lives on the host's loop.
type seat struct {
	loop loop.Loop
	slow *straggler // nil: its GPUs take no time
}

// straggler is GPUs of a host that take time for steps of collectives.
type straggler struct {
	in   *Injector
	spec *faults.Spec
	host string
	s    *seat

	rates map[topo.PortRef]topo.Rate // of the host's NICs
	late  uint64                     // steps, on the host's loop
}

func (in *Injector) straggler(spec *faults.Spec, host string) (*straggler, error) {
	n := in.cfg.Plan.Node(host)
	for i, g := range spec.GPUs {
		if g >= n.GPUs {
			return nil, strict.At(fmt.Sprintf("gpus[%d]", i), "%s has no GPU %d: it has %d", host, g, n.GPUs)
		}
	}
	if n.GPUs == 0 {
		return nil, strict.At("at", "%s has no GPUs", host)
	}
	st := &straggler{in: in, spec: spec, host: host, s: in.seats[host], rates: map[topo.PortRef]topo.Rate{}}
	for _, p := range in.cfg.Plan.Ports(host) {
		st.rates[p.Ref] = in.cfg.Plan.Link(p.Ref).Rate
	}
	return st, nil
}

// step is workloads.Step.
func (in *Injector) step(nic topo.PortRef, gpu, bytes int) time.Duration {
	if st := in.seats[nic.Node].slow; st != nil {
		return st.takes(nic, gpu, bytes)
	}
	return 0
}

// takes is the time that is added to a step. A GPU that works at its normal speed keeps up with its NIC's line; one at a share of it takes longer by what
// the line takes for the step's bytes, times 1 ÷ share − 1.
func (st *straggler) takes(nic topo.PortRef, gpu, bytes int) time.Duration {
	if len(st.spec.GPUs) > 0 && !slices.Contains(st.spec.GPUs, gpu) {
		return 0
	}
	d := st.spec.Delay
	if s := float64(st.spec.Speed); s > 0 {
		d = time.Duration(float64(bytes) * 8e9 / float64(st.rates[nic]) * (1/s - 1))
	}
	if d > 0 {
		st.late++
	}
	return d
}

func (st *straggler) apply(done func(error)) {
	st.in.on(st.s.loop, func() error { st.s.slow = st; return nil }, done)
}

func (st *straggler) verify(done func(error)) {
	st.in.on(st.s.loop, func() error { return st.is(st) }, done)
}

func (st *straggler) clean(done func(error)) {
	st.in.on(st.s.loop, func() error { return st.is(nil) }, done)
}

func (st *straggler) is(want *straggler) error {
	if st.s.slow != want {
		return fmt.Errorf("%s: how fast its GPUs are is not as this fault left it", st.host)
	}
	return nil
}

func (st *straggler) hits(done func(uint64, error)) {
	var n uint64
	st.in.on(st.s.loop, func() error { n = st.late; return nil }, func(err error) { done(n, err) })
}

// heal lets steps take no time from now on. Those that are under way end when they would have.
func (st *straggler) heal(done func(error)) {
	st.in.on(st.s.loop, func() error {
		if st.s.slow == st {
			st.s.slow = nil
		}
		return nil
	}, done)
}
