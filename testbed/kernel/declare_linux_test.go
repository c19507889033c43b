package kernel

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/asic"
	"github.com/rocebed/rocebed/topo"
)

func TestGivenHeadroomIsEnoughForTheReactionThatWouldHaveAskedForIt(t *testing.T) {
	l := &topo.Link{Rate: 10 * topo.Gbps, Delay: 3 * time.Microsecond, MTU: 4200}
	for _, want := range []time.Duration{0, time.Microsecond, 200 * time.Microsecond} {
		given := topo.Bytes(asic.Headroom(uint64(l.Rate), l.Delay, want, l.MTU))
		if got := headroomFor(&given, l); (got - want).Abs() > time.Nanosecond*2 {
			t.Errorf("%v of headroom is for %v, not %v", given, got, want)
		}
	}
	if less := topo.Bytes(1000); headroomFor(&less, l) != 0 || headroomFor(nil, l) != 0 {
		t.Errorf("too little headroom is for %v, none for %v", headroomFor(&less, l), headroomFor(nil, l))
	}
}
