//go:build linux

package kernel

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

func planned(t *testing.T, spec topo.Spec) *topo.Plan {
	t.Helper()
	top, err := spec.Build()
	if err != nil {
		t.Fatal(err)
	}
	p, err := top.Plan(spec.PlanOptions())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRatesAreDividedToTheNearestByte(t *testing.T) {
	for _, c := range []struct {
		rate topo.Rate
		d    loop.Dilation
		want topo.Rate
	}{
		{100 * topo.Gbps, 1, 100 * topo.Gbps},
		{100 * topo.Gbps, 1024, 97656248},
		{8 * topo.Mbps, 1 << 20, 8},
	} {
		if got := wallRate(c.rate, c.d); got != c.want {
			t.Errorf("%v at %v: %d bit/s, expected %d", c.rate, c.d, got, c.want)
		}
	}
}

func TestWhatTheBackendCannotMakeIsRefusedWithTheReason(t *testing.T) {
	p := planned(t, star(2, 100*topo.Mbps, time.Microsecond))
	soft := planned(t, topo.Spec{Star: &topo.Star{Hosts: 2}, Hosts: topo.HostSettings{Kind: topo.SoftHost}})
	for want, c := range map[string]Config{
		"dilation of 1048576": {Plan: p, Dilation: 1 << 20},
		"not soft-host":       {Plan: soft, Dilation: 1},
	} {
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected an error with %q, got %v", want, err)
		}
	}
}

func TestGuestMemoryFollowsFromTheTopology(t *testing.T) {
	small := planned(t, star(2, topo.Gbps, 0)).Topology
	large := planned(t, star(64, topo.Gbps, 0)).Topology
	if m := GuestMemoryMB(small, fabric.NICSettings{}); m != 1024 {
		t.Errorf("2 hosts need %d MB", m)
	}
	shared := GuestMemoryMB(large, fabric.NICSettings{RDMA: fabric.RDMAShared})
	// 64 devices in 66 namespaces, at 0.7 MB or more each (reference figures: 55 MB a device at 76).
	if shared < 64*66*7/10 {
		t.Errorf("64 hosts sharing need only %d MB", shared)
	}
	if auto := GuestMemoryMB(large, fabric.NICSettings{}); auto >= shared {
		t.Errorf("64 hosts need %d MB by themselves, %d sharing", auto, shared)
	}
}

func TestFaultsThatThisFabricCannotHaveAreRefusedUpFront(t *testing.T) {
	cfg := Config{Plan: planned(t, star(2, 100*topo.Mbps, time.Microsecond)), Dilation: 1024}
	at := []string{"leaf1:eth0"}
	for reason, s := range map[string]faults.Spec{
		"no more than the fault": {Kind: faults.RateLimit, Rate: topo.Gbps},
		"at least 8kbps":         {Kind: faults.RateLimit, Rate: topo.Mbps},
		"as far as netem goes":   {Kind: faults.Delay, Delay: time.Second, Jitter: 10 * time.Millisecond},
		"not between 0 and 1h":   {Kind: faults.Delay, Delay: time.Minute},
		"notices nothing":        {Kind: faults.LinkFlap, Period: 4 * time.Microsecond, Down: 2 * time.Microsecond},
	} {
		s.Name, s.At = "x", at
		if err := cfg.CheckFault(s); err == nil || !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), "leaf1:eth0") {
			t.Errorf("expected leaf1:eth0 and %q, got %v", reason, err)
		}
	}
	boot := faults.Spec{Name: "x", At: []string{"leaf1"}, Kind: faults.Reboot, Down: 4 * time.Microsecond}
	if err := cfg.CheckFault(boot); err == nil || !strings.Contains(err.Error(), "notices nothing") {
		t.Errorf("a switch that is off for 4 ms of wall time: %v", err)
	}
	unmeasured := cfg
	unmeasured.Dilation = 0 // auto: it will be asked again
	for _, s := range []faults.Spec{boot, {Name: "x", At: at, Kind: faults.LinkFlap, Period: 4 * time.Microsecond, Down: 2 * time.Microsecond}} {
		if err := unmeasured.CheckFault(s); err != nil {
			t.Errorf("%s is refused before the dilation is known: %v", s.Kind, err)
		}
	}
	if err := cfg.CheckFault(faults.Spec{Name: "x", At: at, Kind: faults.RateLimit, Rate: 50 * topo.Mbps}); err != nil {
		t.Error(err)
	}
}

func TestARateThatDilationMovesIsWarnedOf(t *testing.T) {
	for rate, warns := range map[topo.Rate]int{100 * topo.Gbps: 0, 10 * topo.Mbps: 1} {
		f := &Fabric{cfg: Config{Plan: planned(t, star(2, rate, 0)), Dilation: 1024, Log: slog.New(slog.DiscardHandler)}}
		f.rounded()
		if w := f.Warnings(); len(w) != warns {
			t.Errorf("%v: warnings %q", rate, w)
		}
	}
}

func TestAnIPv6PacketIsCutToNoLessThanItsHeaders(t *testing.T) {
	for family, least := range map[topo.Family]int{topo.IPv4: packet.MinTruncate, topo.IPv6: 54} {
		spec := star(2, 100*topo.Mbps, time.Microsecond)
		spec.Addresses = family
		cfg := Config{Plan: planned(t, spec), Dilation: 1024}
		for n := packet.MinTruncate; n < 64; n++ {
			events := []packet.Event{{Do: packet.Do{{Verb: packet.Truncate, N: n}}}}
			err := cfg.CheckFault(faults.Spec{Name: "x", At: []string{"leaf1:eth0"}, Kind: faults.Packets, Events: events})
			if (err == nil) != (n >= least) {
				t.Errorf("%s, cut to %d bytes: %v", family, n, err)
			}
		}
	}
}
