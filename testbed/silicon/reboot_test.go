package silicon

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

func TestASwitchThatIsOffAndALinkThatIsDownComposeInAnyOrder(t *testing.T) {
	for _, first := range []string{"boot", "down"} {
		l := newLab(t, lossless())
		link := l.plan.Topology.LinksBetween("leaf1", "spine1")[0]
		dark := func() (n int) {
			for i := range l.plan.PortCount() {
				if p := l.in.port(l.plan.PortAt(i).Ref); p.Wire.IsCut() {
					n++
				}
			}
			return n
		}
		boot := l.apply("kind: reboot, at: [leaf1], down: 10s")
		down := l.apply("kind: down, at: ['leaf1-spine1']")
		if n := dark(); n != 6 || l.switches["leaf1"].Powered() || !l.in.routing.down[link] {
			t.Fatalf("%d ports of 6 have no carrier, leaf1 is on: %v", n, l.switches["leaf1"].Powered())
		}
		heal := func(a fabric.Applied, hits uint64) {
			t.Helper()
			if n := l.heal(a); n != hits {
				t.Errorf("%d hits, not %d", n, hits)
			}
		}
		if first == "boot" { // the link stays down
			heal(boot, 1)
			if n := dark(); n != 2 || !l.switches["leaf1"].Powered() || !l.in.routing.down[link] {
				t.Errorf("leaf1 is back, %d ports of 2 have no carrier", n)
			}
			heal(down, 0) // it had no carrier to lose
		} else {
			heal(down, 0)
			if n := dark(); n != 6 || l.switches["leaf1"].Powered() || !l.in.routing.down[link] {
				t.Errorf("leaf1 is off still, and %d ports of 6 have no carrier", n)
			}
			heal(boot, 1)
		}
		if n := dark(); n != 0 || len(l.in.routing.down) > 0 || len(l.in.routing.held) > 0 {
			t.Errorf("all is healed, %d ports have no carrier, and routes go round %v", n, l.in.routing.down)
		}
	}
}

func TestASwitchComesBackByItself(t *testing.T) {
	l := newLab(t, lossless())
	boot := l.apply("kind: reboot, at: [spine1], down: 100us")
	up := topo.PortRef{Node: "spine1", Port: "eth0"}
	if l.switches["spine1"].Powered() || !l.in.port(up).Wire.IsCut() {
		t.Fatal("it is on")
	}
	l.v.RunUntil(l.v.Now() + loop.Time(150*time.Microsecond))
	if !l.switches["spine1"].Powered() || l.in.port(up).Wire.IsCut() || len(l.in.routing.down) > 0 {
		t.Error("it has not come back")
	}
	boot.Verify(func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	l.run()
	if n := l.heal(boot); n != 1 {
		t.Errorf("%d hits", n)
	}
}
