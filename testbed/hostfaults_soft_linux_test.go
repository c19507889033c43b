package testbed

import (
	"slices"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/internal/testneed"
)

// Soft hosts with a process of their own are this program again.
func init() { ProcessIfAsked() }

// hostsOnSoft is h1 ── leaf1 ── leaf2 ── h2 of software nodes.
const hostsOnSoft = `apiVersion: rocebed/v1
name: hosts
dilation: 256
topology:
  dumbbell: {left: 1, right: 1}
  rate: 10Gbps
nics: {process: PROCESS}
workloads:
  - {name: w, kind: write, from: [h1], to: [h2], size: 16KiB, messages: 200, depth: 4, qps: 2, qp: {timeout: 9, retry_cnt: 3}EXPECT}
faults:
  - {name: it, FAULT}
`

func TestHostsOfSoftNodesSufferWithAndWithoutAProcessOfTheirOwn(t *testing.T) {
	testneed.Root(t)
	for _, c := range []struct {
		process, fault string
		statuses       []string
	}{
		{"false", "kind: process-pause, at: [h2], schedule: {at: 500us, for: 1ms}", nil},
		{"true", "kind: process-pause, at: [h2], schedule: {at: 500us, for: 1ms}", nil},
		{"false", "kind: process-kill, at: [h2], schedule: {at: 500us}", []string{"RETRY_EXC_ERR"}},
		{"true", "kind: process-kill, at: [h2], schedule: {at: 500us}", []string{"RETRY_EXC_ERR"}},
		{"false", "kind: slow-clock, at: [h1], speed: 50%, schedule: {at: 500us, for: 2ms}", nil},
		{"true", "kind: wrong-gid, at: ['h2:eth0'], schedule: {at: 500us}", []string{"RETRY_EXC_ERR"}},
		{"true", "kind: nic-reset, at: ['h2:eth0'], down: 500us, schedule: {at: 500us}", []string{"RETRY_EXC_ERR"}},
	} {
		expect := ""
		if len(c.statuses) > 0 && !strings.Contains(c.fault, "kill") {
			expect = ", expect_error: retry-exceeded"
		}
		source := strings.NewReplacer("PROCESS", c.process, "FAULT", c.fault, "EXPECT", expect).Replace(hostsOnSoft)
		out, _ := runOn(t, t.Context(), Soft, source, RunOptions{AllowSlow: true, Progress: NewLines(t.Output(), 0)})
		f := out.Summary.Faults[0]
		if !out.Passed() || !f.Verified || !f.Healed || f.Hits < 1 || f.Hits > 1 && strings.Contains(c.fault, "process-") {
			t.Errorf("process: %s, %s: passed %v, %+v, problems %q", c.process, c.fault, out.Passed(), f, out.Summary.Problems)
		}
		if w := out.Summary.Workloads[0]; !slices.Equal(w.Statuses, c.statuses) {
			t.Errorf("process: %s, %s: statuses %q", c.process, c.fault, w.Statuses)
		}
	}
}
