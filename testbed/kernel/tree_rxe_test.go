//go:build linux

package kernel

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/kernel/nl"
	"github.com/rocebed/rocebed/testbed/kernel/tc"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

// From any declaration to any other on the real kernel, each step read back and compared. rxe
// isn't needed for it, but red and netem are, and the kernels that have the one have the others.
func TestTheKernelTakesEveryTreeAndEveryChange(t *testing.T) {
	testneed.Rxe(t)
	marked := func(m tc.Marker) []tc.Priority { return []tc.Priority{{Limit: 1 << 20, Marker: &m}} }
	plain := []tc.Priority{{Limit: 100_000}}
	one := func(q tc.Netem) []tc.Object { return []tc.Object{{ID: 1 << 16, Parent: tc.Root, Spec: q}} }
	trees := [][]tc.Object{
		tc.Port{Rate: 97656248, MTU: 4200, Priorities: marked(tc.Marker{Kmin: 20_000, Kmax: 60_000, Pmax: 0.01})}.Tree(),
		tc.Port{Rate: 400 * topo.Gbps, MTU: 9000, Priorities: marked(tc.Marker{Kmin: 5000, Kmax: 200_000, Pmax: 1})}.Tree(),
		tc.Port{Rate: 400 * topo.Gbps, MTU: 9000, Priorities: marked(tc.Marker{Off: true})}.Tree(),
		tc.Port{Rate: 8000, MTU: 1500, Priorities: plain}.Tree(),
		tc.Port{Rate: topo.Gbps, MTU: 1500, Priorities: append(marked(tc.Marker{Kmin: 1, Kmax: 2, Pmax: 0.5}), plain[0], plain[0])}.Tree(),
		one(tc.Netem{}),
		one(tc.Netem{Delay: 1024*time.Microsecond + 1}),
		one(tc.Netem{Delay: 20 * time.Minute, Jitter: 2 * time.Second}),
		one(tc.Netem{Delay: time.Millisecond, Jitter: 333 * time.Microsecond, Distribution: "normal"}),
		one(tc.Netem{Delay: time.Millisecond, Jitter: 333 * time.Microsecond, Distribution: "pareto"}),
		one(tc.Netem{Delay: time.Millisecond, Jitter: 333 * time.Microsecond, Distribution: "paretonormal"}),
		nil,
	}
	err := linux.Scratch(func() error {
		s, err := newScratch()
		if err != nil {
			return err
		}
		defer s.close()
		for from := range trees {
			for _, to := range []int{from, (from + 1) % len(trees), (from*3 + 2) % len(trees)} {
				for _, i := range []int{from, to} {
					have, err := s.tc.Tree(scratchA)
					if err != nil {
						return err
					}
					var b nl.Batch
					for _, op := range tc.Diff(have, trees[i]) {
						tc.AppendOp(&b, scratchA, op, "scratch")
					}
					if err := s.tc.Send(&b); err != nil {
						t.Errorf("tree %d: %v", i, err)
					}
					if have, err = s.tc.Tree(scratchA); err != nil {
						return err
					}
					if err := tc.Verify(have, trees[i]); err != nil {
						t.Errorf("tree %d (after %d): %v", i, from, err)
					}
					if len(tc.Diff(have, trees[i])) > 0 && len(trees[i]) > 0 {
						t.Errorf("tree %d: made, and %v is still to do", i, tc.Diff(have, trees[i]))
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
