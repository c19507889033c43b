package testbed

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rocebed/rocebed/topo"
)

// Messages of 16 packets, one at a time, over h1 ── leaf1 ──events──▶ leaf2 ── h2.
const pickedOnRxe = `apiVersion: rocebed/v1
name: picked
dilation: 256
topology:
  dumbbell: {left: 1, right: 1}
  rate: 10Gbps
workloads:
  - {name: w, kind: write, from: [h1], to: [h2], size: 64KiB, messages: 8, depth: 1, qp: {traffic_class: 106, timeout: 12}}
faults:
  - {name: it, kind: packets, at: [leaf1-leaf2], direction: %s, events: [%s]}
expect:
  - 'workloads["w"].verified_bytes == 8 * bytesize("64KiB")'
`

// pickedRun runs events on real rxe and gives what passed both ends of the link one way, h1's packets or h2's.
func pickedRun(t *testing.T, direction, events string) onLink {
	t.Helper()
	source := fmt.Sprintf(pickedOnRxe, direction, events)
	s, err := Parse("test.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	l := &s.Topology.Links[s.Topology.LinksBetween("leaf1", "leaf2")[0]]
	from, to := l.A, l.B
	if from.Node != "leaf1" {
		from, to = to, from
	}
	out, r := runOnRxe(t, t.Context(), source, RunOptions{Captures: []topo.PortRef{from, to}})
	if !out.Passed() {
		t.Fatalf("%s: problems %q, expectations %v", events, out.Summary.Problems, out.Summary.Expectations)
	}
	got := onLink{fault: out.Summary.Faults[0], left: passedAt(t, r, from), arrived: passedAt(t, r, to)}
	sender := 0
	if direction == "ingress" {
		got.left, got.arrived = got.arrived, got.left
		sender = 1
	}
	port, _ := s.Plan.Port(s.Topology.NICs()[sender])
	for _, all := range []*[]passed{&got.left, &got.arrived} {
		*all = slices.DeleteFunc(*all, func(p passed) bool { return p.from != port.Addr.Addr() })
	}
	return got
}

func TestOnRxeAPacketIsDroppedInThreeIterations(t *testing.T) {
	l := pickedRun(t, "egress", "{match: {workload: w, qp: 0, psn: 5, iteration: 1..3}, do: drop}")
	sent, came, zero := 0, 0, psnOf(l.left[0])
	for _, n := range requests(t, l.left, zero) {
		if n == 5 {
			sent++
		}
	}
	for _, n := range requests(t, l.arrived, zero) {
		if n == 5 {
			came++
		}
	}
	if lost := l.lost(t); sent != 4 || came != 1 || len(lost) != 3 || l.fault.Hits != 3 {
		t.Errorf("PSN 5 was sent %d times and came %d times; %d packets are missing, counted %d", sent, came, len(lost), l.fault.Hits)
	}
}
