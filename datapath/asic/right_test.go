package asic

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rocebed/rocebed/datapath/dcqcn"
)

func TestAQueueMarksAsItIsToldAndCountsWhereItShouldHaveDoneOtherwise(t *testing.T) {
	right := &dcqcn.Marking{Kmin: 10_000, Kmax: 20_000, Pmax: 0.5}
	for name, c := range map[string]struct {
		is          *dcqcn.Marking
		right       *dcqcn.Marking
		marked, off float64 // of packets that leave 15,000 bytes behind
	}{
		"none":             {nil, right, 0, 0.25},
		"one too many":     {right, nil, 0.25, 0.25},
		"twice as steep":   {&dcqcn.Marking{Kmin: 10_000, Kmax: 20_000, Pmax: 1}, right, 0.5, 0.25},
		"it begins late":   {&dcqcn.Marking{Kmin: 40_000, Kmax: 80_000, Pmax: 1}, right, 0, 0.25},
		"it is over early": {&dcqcn.Marking{Kmin: 1, Kmax: 2, Pmax: 1}, right, 1, 0.75},
	} {
		r, lot := compileRight(c.is, &RightECN{c.right}), rand.NewPCG(1, 2)
		const n = 100_000
		marked, off := 0.0, 0.0
		for range n {
			is, should := r.marks(15_000, lot)
			if is {
				marked++
			}
			if is != should {
				off++
			}
		}
		if math.Abs(marked/n-c.marked) > 0.01 || math.Abs(off/n-c.off) > 0.01 {
			t.Errorf("%s: %.3f are marked and %.3f are not as they should be", name, marked/n, off/n)
		}
	}
	if compileRight(right, nil) != nil {
		t.Error("a queue counts though nobody asks")
	}
}
