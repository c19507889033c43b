package testbed

import (
	"fmt"
	"strings"
	"testing"
)

// doubtful is a scenario of 10 Gb/s links, 1 µs long, and MTU 4200, whose sections are given.
func doubtful(t *testing.T, workload string, sections ...string) *Scenario {
	t.Helper()
	s, err := Parse("d.yaml", []byte(`apiVersion: rocebed/v1
name: doubtful
dilation: 1024
topology: {spine-leaf: {spines: 1, leaves: 1, hosts_per_leaf: 4}, rate: 10Gbps, delay: 1us, mtu: 4200}
`+strings.Join(sections, "\n")+"\n"+workload))
	if err != nil {
		t.Fatalf("%s: %v", sections, err)
	}
	return s
}

const (
	inThree = "workloads: [{name: w, kind: write, from: [h1], to: [h4], messages: 4}]\n"
	inZero  = "workloads: [{name: w, kind: write, from: [h1], to: [h4], messages: 4, qp: {traffic_class: 2}}]\n"
)

func TestWhatCanBeHadAndIsHardlyMeantIsWarnedOfAtItsPlace(t *testing.T) {
	for _, c := range []struct {
		workload, sections string
		want               []string // each a part of one warning, in their order; none: nothing is doubted
	}{
		{inThree, "switches: {pfc: {}, ecn: {kmin: 100KB, kmax: 400KB, pmax: 10%}}", nil},
		{inThree, "switches: {memory: 2MB, pfc: {xoff: 100KB, headroom: 32KB}, ecn: {kmin: 100KB, kmax: 400KB, pmax: 10%, priorities: [3]}}\nnics: {dcqcn: paper, pfc: {headroom: 32KB}}", nil},

		{inThree, "switches: {memory: 1MB, pfc: {xoff: 1MB}}", []string{"5:31 switches.pfc.xoff: spine1: 1MB is more than the"}},
		{inThree, "switches: {memory: 1MB, override: [{node: leaf1, pfc: {xoff: 990KB}}]}", []string{"5:56 switches.override[0].pfc.xoff: leaf1: 990KB is more than"}},
		{inThree, "switches: {memory: 1MB, ecn: {kmin: 2MB, kmax: 3MB, pmax: 1%}}", []string{"5:31 switches.ecn.kmin: spine1: 2MB is no less than what can wait in a queue"}},
		{inThree, "switches: {memory: 1MB, alpha: 1/8, ecn: {kmin: 200KB, kmax: 300KB, pmax: 1%}}", []string{"switches.ecn.kmin: spine1: 200KB is no less"}}, // 1/9 of it
		{inThree, "switches: {memory: 1MB, alpha: 1/8, queues: [{priority: 3, alpha: 8}], ecn: {kmin: 200KB, kmax: 300KB, pmax: 1%}}", nil},
		{inThree, "switches: {memory: 2MB, pfc: {xoff: 100KB}, queues: [{priority: 3, weight: 1, ecn: {kmin: 2MB, kmax: 3MB, pmax: 1%}}]}", []string{"switches.queues[0].ecn.kmin: spine1: 2MB is no less"}},

		{inThree, "switches: {pfc: {headroom: 1KB}}", []string{"5:18 switches.pfc.headroom: spine1:eth0: 1KB of headroom is less than what may still come in after a pause was sent, 15"}},
		{inThree, "switches: {pfc: {headroom: 1KB, send: false}}", nil},
		{inThree, "switches: {pfc: {}}\nnics: {override: [{node: h2, pfc: {headroom: 2KB}}]}", []string{"6:36 nics.override[0].pfc.headroom: h2:eth0: 2KB of headroom is less"}},
		{inThree, "nics: {pfc: {headroom: 2KB}}", nil}, // nobody pauses anybody

		{inZero, "switches: {pfc: {}}", []string{
			"switches.pfc.priorities: spine1: RoCE of workload w, DSCP 0, is in priority 0, which pfc doesn't make lossless: it is on for priority 3",
			"switches.pfc.priorities: spine1: pfc is on for priority 3, and nothing that the scenario sends is there: RoCE of its workloads is in priority 0"}},
		{inThree, "switches: {pfc: {priorities: [3, 5]}}", []string{"5:18 switches.pfc.priorities: spine1: pfc is on for priority 5, and nothing"}},
		{inThree, "switches: {priorities: {26: 5}, pfc: {priorities: [5]}}", nil},
		{inThree, "switches: {ecn: {kmin: 9KB, kmax: 20KB, pmax: 1%, priorities: [4]}}", []string{"in priority 3, which ecn doesn't mark", "ecn is on for priority 4"}},
		{inThree, "switches: {queues: [{priority: 4, weight: 1, ecn: {kmin: 9KB, kmax: 20KB, pmax: 1%}}]}", []string{"switches.queues: spine1: RoCE of workload w", "switches.queues: spine1: ecn is on for priority 4"}},
		{inThree, "switches: {ecn: {kmin: 9KB, kmax: 20KB, pmax: 1%, priorities: [3, 6]}}\nnics: {dcqcn: paper}", nil}, // CNPs
		{inThree, "switches: {pfc: {priorities: [3, 1]}}\nfaults: [{name: x, kind: udp-traffic, at: ['h1:eth0'], to: ['h2:eth0'], rate: 1Gbps, dscp: 8}]", nil},
		{inThree, "switches: {pfc: {priorities: [3, 0]}}\nfaults: [{name: x, kind: dscp-map, at: ['leaf1:*'], dscp_map: {26: 0}}]", nil},
		{inThree, "nics: {pfc: {priorities: [4]}}", []string{"5:14 nics.pfc.priorities: h1: RoCE of workload w", "nics.pfc.priorities: h1: pfc is on for priority 4"}},
		{"", "switches: {pfc: {priorities: [5]}}", nil}, // programs send what they like
	} {
		got := Doubts(doubtful(t, c.workload, c.sections), Sim)
		for i, p := range got {
			text := fmt.Sprintf("%d:%d %s: %v", p.Line, p.Col, p.Path, p.Err)
			if i >= len(c.want) || !strings.Contains(text, c.want[i]) {
				t.Errorf("%s: warned of\n  %s", c.sections, text)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %d warnings, want %q", c.sections, len(got), c.want)
		}
	}
}

func TestHeadroomIsDoubtedByWhatAPauseTakesOnTheBackend(t *testing.T) {
	s := doubtful(t, inThree, "switches: {pfc: {xoff: 100KB, headroom: 32KB}}")
	if got := Doubts(s, Sim); len(got) > 0 {
		t.Errorf("in virtual time: %v", got)
	}
	if builders[Kernel] == nil {
		return // it is Linux's alone
	}
	if got := Doubts(s, Kernel); len(got) != 1 || !strings.Contains(got[0].Error(), "pauses obeyed within 97.656") {
		t.Errorf("where an agent sends pauses, 100 ms of wall time: %v", got)
	}
}

func TestARecordHasTheWarningsOfItsScenario(t *testing.T) {
	incast := `workloads:
  - {name: w1, kind: write, from: [h1], to: [h4], size: 256KiB, messages: 16}
  - {name: w2, kind: write, from: [h2], to: [h4], size: 256KiB, messages: 16}
  - {name: w3, kind: write, from: [h3], to: [h4], size: 256KiB, messages: 16}
`
	s := doubtful(t, incast, "switches: {pfc: {xoff: 50KB, headroom: 1KB}}")
	out, r := runInSim(t, t.Context(), string(s.Source), RunOptions{})
	const want = "switches.pfc.headroom: spine1:eth0: 1KB of headroom is less than"
	if len(out.Summary.Warnings) != 1 || !strings.HasPrefix(out.Summary.Warnings[0], want) {
		t.Errorf("warnings %q, want one of %q", out.Summary.Warnings, want)
	}
	events, err := r.Events()
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for _, e := range events {
		if e.What == "warning" && strings.HasPrefix(e.Text, want) {
			said++
		}
	}
	dropped := 0.0
	for _, c := range out.Summary.Counters {
		if c.Name == "headroom_drops" {
			dropped = c.Total
		}
	}
	if said != 1 || dropped == 0 { // what it warns of
		t.Errorf("%d events of it, %v frames dropped for want of headroom", said, dropped)
	}
}
