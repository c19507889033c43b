package soak

import (
	"testing"

	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/testbed/sim"
)

// patience is how many scenarios a planted bug may survive.
const patience = 100

// What random scenarios see of a transport's bugs: those that change bytes, or keep a workload from its end. The others take
// what no workload does (a fence, a window, a PSN at the end of its range): datapath/rnic/torture finds them.
func TestPlantedBugsOfTheTransportAreCaught(t *testing.T) {
	for _, bug := range []rnic.Bugs{rnic.BugStaleAck, rnic.BugAtomicTwice, rnic.BugReadOffset, rnic.BugReplayOffset, rnic.BugAckAhead,
		rnic.BugEarlyCompletion, rnic.BugShortLast, rnic.BugReadGap, rnic.BugDeafTimer} {
		t.Run(bug.String(), func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= patience; seed++ {
				s, err := Scenario(seed, Possible)
				if err != nil {
					t.Fatal(err)
				}
				r, err := Run(t.Context(), s, t.TempDir(), 1, func(c *sim.Config) { c.Bugs = bug })
				if err == nil {
					err = Judge(s, r)
				}
				if err != nil {
					t.Logf("scenario %d: %.200v", seed, err)
					return
				}
			}
			t.Fatalf("none of %d scenarios shows it", patience)
		})
	}
}
