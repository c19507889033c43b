package bed

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/sim"
)

// Fabric brings a scenario's fabric up, for specs that run something on it themselves. It is gone when the spec, or
// the container, is over.
func Fabric(ctx context.Context, scenario string) fabric.Fabric {
	ginkgo.GinkgoHelper()
	s, err := testbed.Parse("spec.yaml", []byte(scenario))
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "the scenario:\n%s", numbered(scenario))
	var f fabric.Fabric
	if Backend() == testbed.Sim {
		f, err = sim.Build(ctx, sim.Config{Plan: s.Plan, Settings: fabric.Settings{NICs: s.NICs, Switches: s.Switches}, Seed: s.Seed})
	} else {
		f, _, err = testbed.Up(ctx, s, testbed.UpOptions{Backend: Backend(), Progress: testbed.NewLines(ginkgo.GinkgoWriter, time.Second)})
	}
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "bring up the scenario:\n%s", numbered(scenario))
	ginkgo.DeferCleanup(f.Close, ginkgo.NodeTimeout(time.Minute))
	return f
}

// On calls fn where a fabric's injector may be called.
func On(f fabric.Fabric, fn func()) {
	if v, ok := f.(fabric.Virtual); ok {
		v.Control().Post(fn)
		return
	}
	go fn()
}

// Receive waits for what comes out of c. Where a fabric's time is virtual it lets time pass meanwhile. Patience is wall
// time.
func Receive[T any](ctx context.Context, f fabric.Fabric, c <-chan T, patience time.Duration) (got T, ok bool) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	v, virtual := f.(fabric.Virtual)
	if !virtual {
		select {
		case got = <-c:
			return got, true
		case <-deadline.C:
		case <-ctx.Done():
		}
		return got, false
	}
	for {
		select {
		case got = <-c:
			return got, true
		case <-deadline.C:
			return got, false
		case <-ctx.Done():
			return got, false
		default:
		}
		if next, some := v.Next(); some {
			v.Drive(max(next, v.Now()).Add(time.Microsecond))
		} else {
			<-time.After(time.Millisecond) // something may be on its way from another goroutine
		}
	}
}

// LookAhead is the least time between two hosts of a fabric, 0 in real time.
func LookAhead(f fabric.Fabric) time.Duration {
	if v, ok := f.(fabric.Virtual); ok {
		return v.LookAhead()
	}
	return 0
}
