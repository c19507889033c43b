package testbed

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/testbed/record"
)

const triggered = `apiVersion: rocebed/v1
name: triggered
seed: 3
topology:
  spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 2}
nics: {dcqcn: {profile: paper}}
workloads:
  - {name: w, kind: write, from: [h1, h2], to: [h3], size: 256KiB, duration: 4ms}
  - {name: later, kind: write, from: [h2], to: [h4], size: 64KiB, messages: 4, start: 1ms}
faults:
`

// eventsOf are what faults went through: NAME: WHAT (TEXT).
func eventsOf(t *testing.T, r *record.Reader) (lines []string) {
	t.Helper()
	events, err := r.Events()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Source == "fault" {
			lines = append(lines, e.Name+": "+e.What+" ("+e.Text+")")
		}
	}
	return lines
}

// oneAfter fails unless lines that contain the texts come in this order.
func oneAfter(t *testing.T, lines []string, texts ...string) {
	t.Helper()
	from := 0
	for _, text := range texts {
		i := slices.IndexFunc(lines[from:], func(l string) bool { return strings.Contains(l, text) })
		if i < 0 {
			t.Errorf("no %q behind line %d of\n%s", text, from, strings.Join(lines, "\n"))
			return
		}
		from += i + 1
	}
}

func TestFaultsWaitForEventsOfAllKinds(t *testing.T) {
	source := triggered + `
  - {name: marked, kind: packets, at: ["h1:eth0"], direction: egress, schedule: {at: 100us, for: 200us}, events: [{match: {class: data, every: 50}, do: drop}]}
  - {name: nak, kind: delay, delay: 2us, at: ["leaf1-spine*"], schedule: {when: "first nak:seq at h1", for: 300us}}
  - {name: counted, kind: loss, probability: 2%, at: ["leaf1-spine*"], schedule: {when: "metric sent_pkts{node=h1} > 40", at: 400us, for: 300us}}
  - {name: begun, kind: loss, probability: 2%, at: ["h2:eth0"], schedule: {when: workload later started, until: workload later finished}}
  - {name: held, kind: duplicate, probability: 5%, at: ["leaf2:*"], schedule: {at: 50us, until: fault nak healed}}
  - {name: seq, at: ["leaf1-spine*"], schedule: {at: 600us}, sequence: [{kind: loss, probability: 5%, schedule: {for: 300us}}, {kind: delay, delay: 1us, schedule: {at: 20us, for: 300us}}]}
  - {name: last, kind: loss, probability: 2%, at: ["leaf1-spine*"], schedule: {when: fault seq healed, for: 500us}}
`
	var hash string
	for _, cores := range []int{1, 4} {
		before := runtime.GOMAXPROCS(cores)
		onCores(t, cores)
		out, r := runInSim(t, t.Context(), source, RunOptions{})
		runtime.GOMAXPROCS(before)
		lines := eventsOf(t, r)
		if !out.Passed() {
			t.Fatalf("problems %q\n%s", out.Summary.Problems, strings.Join(lines, "\n"))
		}
		oneAfter(t, lines, "nak: planned (to strike 0s after first nak:seq at h1)", "marked: verified", "nak: triggered (by first nak:seq at h1: it passed h1:eth0 at", "nak: verified", "held: ended by event (by fault nak healed)", "held: healed")
		oneAfter(t, lines, "counted: triggered (by metric sent_pkts{node=h1} > 40: it was", "counted: planned", "counted: verified clean")
		oneAfter(t, lines, "begun: triggered (by workload later started)", "begun: verified", "begun: ended by event (by workload later finished)", "begun: healed", "begun: verified clean")
		oneAfter(t, lines, "seq/1: healed", "seq/2: triggered (by fault seq/1 healed)", "seq/2: verified", "seq/2: verified clean", "last: triggered (by fault seq healed)", "last: verified clean")
		if hash == "" {
			hash = out.Summary.Hash
		}
		if out.Summary.Hash != hash {
			t.Errorf("on %d cores the record's hash is %s, before it was %s", cores, out.Summary.Hash, hash)
		}
	}
}

func TestAFaultWhoseEventNeverCameFailsTheRunAndSaysWhatWasSeen(t *testing.T) {
	source := triggered + `
  - {name: a, kind: loss, probability: 2%, at: [leaf1], schedule: {when: first atomic at h1}}
  - {name: b, kind: loss, probability: 2%, at: [leaf1], schedule: {when: "metric sent_pkts{node=h4} > 1e9"}}
  - {name: c, kind: loss, probability: 2%, at: [leaf1], schedule: {when: fault a healed}}
  - {name: d, kind: loss, probability: 2%, at: [leaf1], may_miss: true, schedule: {when: fault a applied}}
  - {name: e, kind: loss, probability: 2%, at: [leaf1], schedule: {at: 2ms, until: workload later finished}}
`
	out, _ := runInSim(t, t.Context(), source, RunOptions{})
	got := strings.Join(out.Summary.Problems, "\n")
	for _, want := range []string{
		`a: it never came into force: it waited for "first atomic at h1", which never came: none passed`,
		`b: it never came into force: it waited for "metric sent_pkts{node=h4} > 1e+09", which never came: last seen: `,
		`c: it never came into force: it waited for "fault a healed", which never came: fault a was never in force`,
		`e: it never came into force: "workload later finished", which ends it, came before it was due`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	if out.Passed() || strings.Contains(got, "d: ") {
		t.Errorf("verdict %v, problems\n%s", out.Summary.Verdict, got)
	}
}

func TestAnEventOnALabelThatAMetricHasNotIsRefused(t *testing.T) {
	_, err := Parse("test.yaml", []byte(triggered+"  - {name: a, kind: down, at: [leaf1], schedule: {when: 'metric sent_pkts{nod=h1} > 1'}}\n"))
	if err == nil || !strings.Contains(err.Error(), `metric sent_pkts has no label "nod"; it has node`) {
		t.Error(err)
	}
}

func TestAFaultWaitsForTheFirstCNP(t *testing.T) {
	source := strings.Replace(triggered, "faults:\n", `switches: {ecn: {kmin: 5KB, kmax: 50KB, pmax: 100%}}
faults:
  - {name: a, kind: rate, rate: 20Gbps, at: ["h3:eth0"], schedule: {when: first cnp at h1, for: 500us}}
  - {name: b, kind: cnp-off, at: ["h3:eth0"], schedule: {when: "first cnp at h3:eth0", at: 200us, for: 500us}}
`, 1)
	out, r := runInSim(t, t.Context(), source, RunOptions{})
	lines := eventsOf(t, r)
	if !out.Passed() {
		t.Fatalf("problems %q\n%s", out.Summary.Problems, strings.Join(lines, "\n"))
	}
	// The CNP leaves h3 before it comes to h1.
	oneAfter(t, lines, "b: triggered (by first cnp at h3:eth0: it passed h3:eth0 at", "a: triggered (by first cnp at h1: it passed h1:eth0 at", "a: verified clean")
}
