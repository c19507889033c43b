package testbed

import (
	"slices"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/internal/testneed"
)

// h1 ── leaf1 ── leaf2 ── h2, in real time: a fault for each kind of event.
const eventsInRealTime = `apiVersion: rocebed/v1
name: events
dilation: 1024
topology:
  dumbbell: {left: 1, right: 1}
  rate: 10Gbps
workloads:
  - {name: w, kind: write, from: [h1], to: [h2], size: 64KiB, duration: 6ms}
  - {name: later, kind: write, from: [h2], to: [h1], size: 16KiB, messages: 20, start: 1ms}
faults:
  - {name: lossy, kind: loss, every_nth: 40, at: [leaf1-leaf2], direction: egress, schedule: {at: 500us, for: 2ms}}
  - {name: nak, kind: delay, delay: 20us, at: [leaf1-leaf2], schedule: {when: "first nak:seq at h1", for: 1ms}}
  - {name: counted, kind: duplicate, probability: 20%, at: ["leaf2:eth0"], schedule: {when: "metric if_rx_packets{node=h2} > 20", for: 1ms}}
  - {name: begun, kind: delay, delay: 10us, at: ["h2:eth0"], schedule: {when: workload later started, until: fault nak healed}}
  - {name: never, kind: loss, probability: 1%, at: ["leaf2:eth0"], may_miss: true, schedule: {when: first atomic at leaf1}}
`

func eventsComeInRealTime(t *testing.T, on Backend) {
	out, r := runOn(t, t.Context(), on, eventsInRealTime, RunOptions{AllowSlow: true, Progress: NewLines(t.Output(), 0)})
	lines := eventsOf(t, r)
	if !out.Passed() {
		t.Errorf("problems %q\n%s", out.Summary.Problems, strings.Join(lines, "\n"))
	}
	oneAfter(t, lines, "lossy: planned", "nak: triggered (by first nak:seq at h1: it passed h1:eth0 at", "nak: verified", "begun: ended by event (by fault nak healed)", "begun: healed", "begun: verified clean")
	oneAfter(t, lines, "counted: triggered (by metric if_rx_packets{node=h2} > 20: it was", "counted: verified", "counted: verified clean")
	oneAfter(t, lines, "begun: triggered (by workload later started)", "begun: verified")
	if slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "never: triggered") }) {
		t.Errorf("a packet was seen that nobody sent:\n%s", strings.Join(lines, "\n"))
	}
}

func TestFaultsWaitForEventsOnSoftNodes(t *testing.T) {
	testneed.Root(t)
	eventsComeInRealTime(t, Soft)
}
