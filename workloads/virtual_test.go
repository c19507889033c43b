package workloads

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

const mixed = `
- {name: pairs, kind: all-pairs, size: 3000B, messages: 20, qps: 2}
- {name: adds, kind: incast, op: atomic, from: ['h[1-3]'], to: [h4], messages: 30}
- {name: sum, kind: all-reduce, size: 20KB, slice: 512B, messages: 3, start: 30us}
- {name: swap, kind: all-to-all, size: 16KiB, messages: 2, after: sum}
- {name: loose, kind: send, transport: ud, from: [h1], to: [h2], size: 900B, messages: 200, start: 10us}
- {name: timed, kind: read, from: [h3], to: [h1], size: 5000B, duration: 300us, start: 5us}`

// inVirtualTime runs workloads on virtual loops and returns all that can be seen of them.
func inVirtualTime(t *testing.T, seed uint64, text string) string {
	t.Helper()
	v := loop.NewVirtual(time.Microsecond)
	b := benchOn(t, 4, 1, 1, func(host int) loop.Loop { return v.Node(uint32(host)) })
	b.cfg.Seed = seed
	n := 0
	b.net.meddle = func(m *memMsg) {
		n++
		m.drop = m.wr.AH != nil && n%9 == 0
	}
	e, err := NewEngine(b.cfg, specs(t, text))
	if err != nil {
		t.Fatalf("new engine: %v", err)
	}
	var r *Report
	e.Start(func(done *Report) { r = done })
	if !v.Run(func() bool { return r != nil }) {
		t.Fatalf("nothing left to happen at %v, and no report; events: %s", v.Now(), kindsOf(b.events))
	}
	out, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if !r.Passed() {
		t.Fatalf("failed: %s", out)
	}
	for _, ev := range b.events {
		out = fmt.Appendf(out, "%v %s %s %s %s\n", ev.At, ev.Kind, ev.Workload, ev.Flow, ev.Text)
	}
	return string(out)
}

func TestASeedDeterminesResultsAndEvents(t *testing.T) {
	first := inVirtualTime(t, 42, mixed)
	if again := inVirtualTime(t, 42, mixed); again != first {
		t.Fatalf("the same seed gave two outcomes:\n%s\n---\n%s", first, again)
	}
}

func TestADurationEndsAWorkloadAndItsDataIsStillChecked(t *testing.T) {
	for _, s := range []string{"kind: write", "kind: read", "kind: send", "kind: write, signaling: selective, depth: 16", "kind: send, transport: uc"} {
		res := runVirtually(t, 2, "[{name: w, "+s+", from: [h1], to: [h2], size: 1KiB, duration: 500us}]").Results[0]
		if !res.Passed || res.Bytes == 0 || res.VerifiedBytes != res.Bytes {
			t.Errorf("%s: passed %v (%s), %d of %d bytes verified", s, res.Passed, res.Failure, res.VerifiedBytes, res.Bytes)
		}
		if res.Duration < 500*time.Microsecond || res.Duration > 600*time.Microsecond {
			t.Errorf("%s: took %v, want 500 µs and what was outstanding", s, res.Duration)
		}
	}
}

func runVirtually(t *testing.T, hosts int, text string) *Report {
	t.Helper()
	v := loop.NewVirtual(time.Microsecond)
	b := benchOn(t, hosts, 1, 1, func(host int) loop.Loop { return v.Node(uint32(host)) })
	e, err := NewEngine(b.cfg, specs(t, text))
	if err != nil {
		t.Fatal(err)
	}
	var r *Report
	e.Start(func(done *Report) { r = done })
	if !v.Run(func() bool { return r != nil }) {
		t.Fatalf("%s: nothing left to happen at %v, and no report; events: %s", text, v.Now(), kindsOf(b.events))
	}
	return r
}

// A flow's slots are never overwritten before they are checked, whatever the sizes: else bytes
// would be wrong. Depth, size, service and signalling are drawn at random.
func TestNoShapeOfAWorkloadReadsAsCorrupt(t *testing.T) {
	for i := range uint64(60) {
		k := streamKey(i, "shape", "", 0)
		pick := func(n int) int { k = mix64(k + golden); return int(k % uint64(n)) }
		kinds := []string{"kind: write", "kind: read", "kind: send", "kind: send, transport: uc", "kind: write, transport: uc", "kind: send, transport: ud"}
		kind := kinds[pick(len(kinds))]
		most := 20000
		if kind == kinds[5] {
			most = 4096
		}
		signal := [...]string{"all", "selective"}[pick(2)]
		text := fmt.Sprintf("[{name: w, %s, from: [h1, h2], to: [h3], size: %dB, messages: %d, qps: %d, depth: %d, signaling: %s}]",
			kind, 1+pick(most), 1+pick(90), 1+pick(3), 1+pick(20), signal)
		r := runVirtually(t, 3, text)
		if !r.Passed() || r.Results[0].VerifiedBytes != r.Results[0].Bytes || r.Results[0].Bytes == 0 {
			t.Fatalf("%s: %+v", text, r.Results[0])
		}
	}
}
