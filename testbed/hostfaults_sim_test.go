package testbed

import (
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/topo"
)

// suffering is SENDs, WRITEs and a collective on h1 ── leaf1 ── leaf2 ── h3 (and h2, h4), and a fault in a host for a while.
const suffering = `apiVersion: rocebed/v1
name: suffering
topology:
  dumbbell: {left: 2, right: 2}
  rate: 10Gbps
workloads:
  - {name: a, kind: send, from: [h1], to: [h3], size: 16KiB, messages: 200, depth: 4, qps: 2, qp: {min_rnr_timer: 1}}
  - {name: b, kind: write, from: [h2], to: [h4], size: 64KiB, messages: 80, depth: 4}
faults:
  - {name: it, schedule: {at: 1ms, for: 2ms}, %s}
`

func TestWhereNoReceivesArePostedSendsAreAnsweredByRNRNAKsUntilItHeals(t *testing.T) {
	h3 := topo.PortRef{Node: "h3", Port: "eth0"}
	for fault, flows := range map[string]int{
		"at: ['h3:eth0'], kind: rnr":                        2,
		"at: ['h3:eth0'], kind: rnr, workload: a, flows: 1": 1,
	} {
		seen := observe(t, strings.Replace(suffering, "%s", fault, 1), h3, h3)
		while, outside, to := 0, 0, map[string]bool{}
		for _, p := range seen.left {
			if roce.Opcode(p.bytes[42]).Info().Operation != roce.OpAcknowledge || roce.Syndrome(p.bytes[54]).Kind() != roce.SyndromeRNRNAK {
				continue
			}
			to[p.bytes[47:50]] = true
			if p.at > seen.zero+seen.applied-15*time.Microsecond && p.at < seen.zero+seen.healed+5*time.Microsecond {
				while++
			} else {
				outside++
			}
		}
		// A flow's receives run out one by one: each of the eight (twice the depth) is due once more.
		if n := int(seen.fault.Hits); n != 8*flows || len(to) != flows || while == 0 || outside > 0 {
			t.Errorf("%s: %d hits, RNR NAKs to %d queue pairs: %d while it lasts, %d outside", fault, n, len(to), while, outside)
		}
	}
}
