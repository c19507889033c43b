package testbed

import (
	"strings"
	"testing"
)

// crowdedReal is crowded where time is real: kernel sockets and verbs beside a flow. The dilation leaves a busy machine room.
const crowdedReal = `apiVersion: rocebed/v1
name: crowded
dilation: 1024
topology:
  dumbbell: {left: 2, right: 2}
  rate: 10Gbps
workloads:
  - {name: a, kind: write, from: [h1], to: [h3], size: 64KiB, duration: 3ms, depth: 4}
faults:
  - {name: it, schedule: {at: 200us, for: 2ms}, %s}
`

// besideKinds are traffic beside, and at least how many packets of it there must be.
var besideKinds = map[string]int64{
	"kind: roce-burst, at: ['h2:eth0'], to: ['h4:eth0'], bytes: 300KB":                                 75,
	"kind: roce-burst, at: ['h2:eth0'], to: ['h4:eth0'], rate: 1Gbps, size: 4KiB, dscp: 0, streams: 2": 40,
	"kind: incast-burst, at: [h2, h4], to: ['h3:eth0'], bytes: 50KB, period: 1ms":                      50,
	"kind: udp-traffic, at: ['h2:eth0'], to: ['h4:eth0'], rate: 1Gbps, size: 1000, dscp: 8":            100,
	"kind: tcp-traffic, at: ['h2:eth0'], to: ['h4:eth0'], streams: 2, rate: 1Gbps":                     100,
}

// runBeside runs each kind of traffic beside a flow on a backend whose time is real.
func runBeside(t *testing.T, on Backend) {
	for fault, least := range besideKinds {
		t.Run(strings.Fields(fault)[1], func(t *testing.T) {
			out, r := runOn(t, t.Context(), on, strings.Replace(crowdedReal, "%s", fault, 1), RunOptions{AllowSlow: true})
			if !out.Passed() {
				t.Fatalf("%s: problems %q", fault, out.Summary.Problems)
			}
			f, w := out.Summary.Faults[0], out.Summary.Workloads[0]
			t.Logf("%s: %d hits; the workload: %d bytes, %d retries", fault, f.Hits, w.Bytes, w.Retries)
			if f.Hits < least || !f.Verified || !f.Healed {
				t.Errorf("%s: %d hits, verified %v, healed %v; want at least %d", fault, f.Hits, f.Verified, f.Healed, least)
			}
			if w.VerifiedBytes != w.Bytes || w.WrongBytes != 0 || w.Errors != 0 {
				t.Errorf("%s: of the workload's %d bytes %d were verified and %d wrong, with %d errors", fault, w.Bytes, w.VerifiedBytes, w.WrongBytes, w.Errors)
			}
			events, err := r.Events()
			if err != nil {
				t.Fatal(err)
			}
			oneLife(t, events)
		})
	}
}

func TestOnSoftNodesTrafficBesideIsTheKernelsAndTheNICs(t *testing.T) { runBeside(t, Soft) }
