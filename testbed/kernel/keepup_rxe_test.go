//go:build linux

package kernel

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/topo"
)

// What a host has outstanding waits in its own port:
//
//	h1 (here)── leaf1 ── h2
func TestShapersAreWatchedWherePacketsWaitAndNoFaultIs(t *testing.T) {
	f := build(t, star(2, topo.Gbps, time.Microsecond), Config{})
	here, back := topo.PortRef{Node: "h1", Port: "eth0"}, topo.PortRef{Node: "h2", Port: "eth0"}
	watched := func(ref topo.PortRef) time.Duration {
		s := f.watch.seen(ref)
		return s.busy()
	}

	write(t, f, "h1", "h2", 1<<16, 4, 40, patient)
	if watched(here) == 0 {
		t.Errorf("%s was never watched while packets waited for it", here)
	}
	if watched(back) != 0 {
		t.Errorf("%s, which sends acknowledgements alone, was watched for %v", back, watched(back))
	}
	if s := collect(t, f); s.of(t, "shaper_busy_time", "h1", "eth0") == 0 || s.of(t, "shaper_share", "h1", "eth0") <= 0 {
		t.Error("no metrics of it")
	}

	slow := inject(t, f, faults.Spec{Name: "slow", Kind: faults.RateLimit, At: []string{"h1:eth0"}, Direction: faults.Egress, Rate: 500 * topo.Mbps})
	if err := f.JudgeKeepUp(); err != nil {
		t.Fatal(err)
	}
	write(t, f, "h1", "h2", 1<<16, 4, 40, patient)
	if d := watched(here); d != 0 {
		t.Errorf("%s was judged by its link's rate for %v while a fault had slowed it", here, d)
	}
	slow.heal()
	write(t, f, "h1", "h2", 1<<16, 4, 40, patient)
	if watched(here) == 0 {
		t.Errorf("%s is not watched any more after the fault", here)
	}
}
