package testbed

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/roce"
)

// congested is two senders over one link, which leaf1 marks, and a fault in leaf1 for a while.
const congested = `apiVersion: rocebed/v1
name: congested
topology:
  dumbbell: {left: 2, right: 2}
  rate: 10Gbps
switches:
  memory: 8MB
  ecn: {kmin: 10KB, kmax: 40KB, pmax: 20%}
workloads:
  - {name: a, kind: write, from: [h1], to: [h3], size: 64KiB, messages: 60, depth: 4}
  - {name: b, kind: write, from: [h2], to: [h4], size: 64KiB, messages: 60, depth: 4}
faults:
  - {name: it, may_miss: true, schedule: {at: 1ms, for: 2ms}, %s}
`

func TestFaultsInASwitchAreSeenOnTheWireWhileTheyLastAndCountWhatWentThrough(t *testing.T) {
	s, err := Parse("test.yaml", []byte(strings.Replace(congested, "%s", "kind: ecn-off, at: [leaf1]", 1)))
	if err != nil {
		t.Fatal(err)
	}
	l := &s.Topology.Links[s.Topology.LinksBetween("leaf1", "leaf2")[0]]
	from := l.A
	if from.Node != "leaf1" {
		from = l.B
	}
	ce := func(p passed) bool { return p.bytes[15]&3 == 3 }
	for fault, ok := range map[string]func(marked, of int) bool{
		"kind: ecn-off": func(marked, of int) bool { return marked == 0 },
		"kind: ecn-thresholds, kmin: 1B, kmax: 2B, pmax: 100%":    func(marked, of int) bool { return marked > of*9/10 },
		"kind: ecn-thresholds, kmin: 7MB, kmax: 8MB, pmax: 100%":  func(marked, of int) bool { return marked == 0 },
		"kind: ecn-off, priorities: [7]":                          func(marked, of int) bool { return marked > of/2 },
		"kind: stuck-queue, priorities: [0, 1, 2, 3, 4, 5, 6, 7]": func(_, of int) bool { return of == 0 },
	} {
		seen := observe(t, strings.Replace(congested, "%s", fmt.Sprintf("at: ['%s'], %s", from, fault), 1), from, from)
		begin, end := seen.zero+seen.applied, seen.zero+seen.healed
		var marked, of, outside int
		for _, p := range seen.left {
			switch {
			case roce.Opcode(p.bytes[42]).Info().Operation != roce.OpRDMAWrite: // the other way
			case p.at > begin+10*time.Microsecond && p.at < end-10*time.Microsecond:
				of++
				if ce(p) {
					marked++
				}
			case (p.at < begin || p.at > end) && ce(p):
				outside++
			}
		}
		if !ok(marked, of) || outside == 0 {
			t.Errorf("%s: %d of %d packets are marked while it lasts, %d outside", fault, marked, of, outside)
		}
		// A packet is hit if its mark would be another without the fault. The queue stands above Kmax, so that all would be marked.
		hits := int(seen.fault.Hits)
		switch {
		case strings.Contains(fault, "off, priorities: [7]") || strings.Contains(fault, "1B"): // and all are
			if hits > of/10 {
				t.Errorf("%s: %d packets left while it lasted, counted %d", fault, of, hits)
			}
		case strings.Contains(fault, "ecn") && (hits < of*9/10 || hits > of+40):
			t.Errorf("%s: %d packets left unmarked while it lasted, counted %d", fault, of, hits)
		}
		if strings.Contains(fault, "stuck") && seen.fault.Hits < 2 {
			t.Errorf("%s: counted %d", fault, seen.fault.Hits)
		}
	}
}

func TestAnotherHashSeedIsCountedByThePacketsThatGoAnotherWayForIt(t *testing.T) {
	const source = `apiVersion: rocebed/v1
name: seeds
topology: {spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 1}, rate: 10Gbps}
workloads: [{name: a, kind: write, from: [h1], to: [h2], qps: 16, size: 16KiB, messages: 20}]
faults: [{name: it, kind: hash-seed, at: [leaf1], hash_seed: 99, schedule: {at: 1ms, for: 2ms}}]
`
	s, err := Parse("test.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	moved, hits := 0, int64(0)
	for _, spine := range []string{"spine1", "spine2"} {
		l := &s.Topology.Links[s.Topology.LinksBetween("leaf1", spine)[0]]
		up := l.A
		if up.Node != "leaf1" {
			up = l.B
		}
		seen := observe(t, source, up, up)
		h1, _ := s.Plan.Port(s.Topology.NICs()[0])
		usual := map[string]bool{} // flows, by UDP source port
		for _, p := range seen.left {
			switch flow := p.bytes[34:36]; {
			case p.from != h1.Addr.Addr():
			case p.at < seen.zero+seen.applied-2*time.Microsecond:
				usual[flow] = true
			case p.at < seen.zero+seen.healed && !usual[flow]:
				moved++
			}
		}
		hits = seen.fault.Hits
	}
	if moved == 0 || hits < int64(moved)-8 || hits > int64(moved)+8 {
		t.Errorf("%d packets went another way, counted %d", moved, hits)
	}
}
