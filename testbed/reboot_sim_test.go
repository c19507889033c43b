package testbed

import (
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/testbed/metrics"
)

// rebooted is traffic over two spines, one of which reboots.
const rebooted = `apiVersion: rocebed/v1
name: rebooted
topology:
  spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 2}
  rate: 10Gbps
nics: {max_unacked: 64}
workloads:
  - {name: a, kind: write, from: [h1, h2], to: [h3, h4], qps: 4, size: 64KiB, messages: 40, depth: 4}
faults:
  - {name: it, kind: reboot, at: [spine1], down: 500us, %s}
`

func TestASwitchThatRebootsLosesWhatItHoldsIsRoutedRoundAndComesBack(t *testing.T) {
	for schedule, down := range map[string]time.Duration{
		"schedule: {at: 1ms}":             500 * time.Microsecond,
		"schedule: {at: 1ms, for: 200us}": 200 * time.Microsecond, // healed before it is up by itself
	} {
		source := strings.Replace(rebooted, "%s", schedule, 1)
		at := func(spine string) onLink {
			s, err := Parse("test.yaml", []byte(source))
			if err != nil {
				t.Fatal(err)
			}
			l := &s.Topology.Links[s.Topology.LinksBetween("leaf2", spine)[0]]
			from := l.A
			if from.Node != "leaf2" {
				from = l.B
			}
			return observe(t, source, from, from)
		}
		count := func(l onLink) (before, during, after int) {
			for _, p := range l.left {
				switch begin := l.zero + l.applied; {
				case p.at < begin-2*time.Microsecond:
					before++
				case p.at > begin+2*time.Microsecond && p.at < begin+down-2*time.Microsecond:
					during++
				case p.at > begin+down+2*time.Microsecond:
					after++
				}
			}
			return before, during, after
		}
		one := at("spine1")
		if before, during, after := count(one); before < 100 || during > 0 || after < 100 || one.fault.Hits != 1 {
			t.Errorf("%s: at leaf2's port to spine1 are %d packets before, %d while it is down, %d after it; hits %d", schedule, before, during, after, one.fault.Hits)
		}
		if before, during, after := count(at("spine2")); before < 100 || during < 50 || after < 100 {
			t.Errorf("%s: at leaf2's port to spine2 are %d packets before, %d while spine1 is down, %d after it", schedule, before, during, after)
		}
	}
}

func TestWhatASwitchHeldWhenItRebootedIsCountedAsLost(t *testing.T) {
	source := strings.Replace(strings.Replace(rebooted, "to: [h3, h4]", "to: [h3, h3]", 1), "at: [spine1]", "at: [leaf2]", 1)
	out, r := runInSim(t, t.Context(), strings.Replace(source, "%s", "schedule: {at: 1ms}", 1), RunOptions{})
	if !out.Passed() {
		t.Fatalf("problems %q", out.Summary.Problems)
	}
	last := map[string]map[string]float64{} // by metric and labels, of leaf2
	if err := r.Readings(func(m metrics.Reading) error {
		for _, s := range m.Samples {
			if len(s.Labels) > 1 && s.Labels[0] == "leaf2" {
				if last[s.Name] == nil {
					last[s.Name] = map[string]float64{}
				}
				last[s.Name][strings.Join(s.Labels, " ")] = s.Value
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	sum := func(name string) (n float64) {
		for _, v := range last[name] {
			n += v
		}
		return n
	}
	if in, out, lost := sum("port_rx_frames"), sum("port_tx_frames"), sum("queue_drops"); in == 0 || in != out+lost || lost == 0 {
		t.Errorf("%v frames came to leaf2, %v left it and %v are counted as lost from its queues", in, out, lost)
	}
	if n := sum("link_downed"); n != 4 {
		t.Errorf("leaf2's four ports lost their carrier %v times", n)
	}
}
