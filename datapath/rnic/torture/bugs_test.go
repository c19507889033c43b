package torture

import (
	"testing"

	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// patience is how many runs a planted bug may survive.
const patience = 2000

// Each bug is found by a run whose seed, without the bug, violates nothing.
func TestEveryPlantedBugIsCaught(t *testing.T) {
	rc := verbs.RC
	for _, bug := range rnic.AllBugs() {
		t.Run(bug.String(), func(t *testing.T) {
			t.Parallel()
			var r Runner
			for seed := uint64(1); seed <= patience; seed++ {
				o := Options{Kind: &rc, Bugs: bug}
				_, err := r.Do(seed, o)
				if err == nil {
					continue
				}
				o.Bugs = 0
				if _, clean := new(Runner).Do(seed, o); clean != nil {
					t.Fatalf("without the bug: %v", clean)
				}
				t.Logf("run %d: %v", seed, err)
				return
			}
			t.Fatalf("none of %d runs shows it", patience)
		})
	}
}
