package testbed

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/testbed/analysis"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/topo"
)

// hostsOnRxe is h1 ── leaf1 ── leaf2 ── h2, and a fault in a host.
const hostsOnRxe = `apiVersion: rocebed/v1
name: hosts
dilation: 256
topology:
  dumbbell: {left: 1, right: 1}
  rate: 10Gbps
workloads:
  - WORKLOAD
faults:
  - {name: it, FAULT}
`

func TestFaultsInHostsDoOnRxeWhatTheySay(t *testing.T) {
	const sends, writes = "{name: w, kind: send, from: [h1], to: [h2], size: 16KiB, messages: 300, depth: 4, qps: 2%s}", "{name: w, kind: write, from: [h1], to: [h2], size: 16KiB, messages: 300, depth: 4, qps: 2%s}"
	for _, c := range []struct {
		workload, more, fault string
		hits                  func(n int64) bool
		statuses              []string
		retries               string // a counter that rises
	}{
		{sends, "", "kind: rnr, at: ['h2:eth0'], schedule: {at: 1ms, for: 5ms}", func(n int64) bool { return n == 16 }, nil, "rnr_nak_retry_err"},
		{writes, ", expect_error: retry-exceeded, qp: {timeout: 8, retry_cnt: 2}", "kind: qp-kill, at: ['h2:eth0'], workload: w, flows: 1, schedule: {at: 1ms}", func(n int64) bool { return n == 1 }, []string{"RETRY_EXC_ERR"}, ""},
		{writes, ", expect_error: retry-exceeded, qp: {timeout: 8, retry_cnt: 2}", "kind: nic-reset, at: ['h2:eth0'], down: 1ms, schedule: {at: 1ms}", func(n int64) bool { return n == 2 }, []string{"RETRY_EXC_ERR"}, ""},
		{writes, "", "kind: process-pause, at: [h1], schedule: {at: 500us, for: 1ms}", func(n int64) bool { return n == 1 }, nil, ""},
		{writes, ", qp: {timeout: 8, retry_cnt: 2}", "kind: process-kill, at: [h2], schedule: {at: 500us}", func(n int64) bool { return n == 1 }, []string{"RETRY_EXC_ERR"}, ""},
		{writes, ", expect_error: retry-exceeded, qp: {timeout: 8, retry_cnt: 2}", "kind: wrong-gid, at: ['h1:eth0'], schedule: {at: 500us}", func(n int64) bool { return n > 10 }, []string{"RETRY_EXC_ERR"}, ""},
		{"{name: w, kind: all-reduce, size: 256KiB, slice: 64KiB, messages: 2}%s", "", "kind: gpu-straggler, at: [h1], delay: 100us", func(n int64) bool { return n >= 8 && n <= 2*(2*2+1) }, nil, ""},
	} {
		t.Run(strings.Fields(strings.ReplaceAll(c.fault, ",", " "))[1], func(t *testing.T) {
			source := strings.NewReplacer("WORKLOAD", strings.Replace(c.workload, "%s", c.more, 1), "FAULT", c.fault).Replace(hostsOnRxe)
			h1 := topo.PortRef{Node: "h1", Port: "eth0"}
			out, r := runOnRxe(t, t.Context(), source, RunOptions{Captures: []topo.PortRef{h1}})
			f := out.Summary.Faults[0]
			if !out.Passed() || !f.Verified || !f.Healed || !c.hits(f.Hits) {
				t.Errorf("%s: passed %v, %+v, problems %q", c.fault, out.Passed(), f, out.Summary.Problems)
			}
			b, err := r.File(record.CaptureName(h1.Node, h1.Port))
			if err != nil {
				t.Fatal(err)
			}
			astray := int64(0)
			if err := analysis.ReadCapture(bytes.NewReader(b), func(p *analysis.Packet) error {
				if p.SrcAddr() == roce.Addr4([4]byte{192, 0, 2, 1}) {
					astray++
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if wrong := strings.Contains(c.fault, "wrong-gid"); wrong && astray != f.Hits || !wrong && astray > 0 {
				t.Errorf("%s: %d packets left with a wrong source, %d hits", c.fault, astray, f.Hits)
			}
			if w := out.Summary.Workloads[0]; !slices.Equal(w.Statuses, c.statuses) {
				t.Errorf("%s: statuses %q", c.fault, w.Statuses)
			}
		})
	}
}
