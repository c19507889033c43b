package workloads

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

// What Ends says before a run is what the results say after it.
func TestTheEndsOfFlowsAreKnownBeforeTheyRun(t *testing.T) {
	for _, text := range []string{
		"[{name: w, kind: write, from: [h1, h2], to: [h3, h4], qps: 2, messages: 2}]",
		"[{name: w, kind: read, from: [h1, h2], to: [h3], qps: 2, messages: 2}]",
		"[{name: w, kind: incast, op: read, from: [h1, h2], to: [h3], messages: 2}]",
		"[{name: w, kind: all-pairs, from: [h1, h2, h3], messages: 1}]",
		"[{name: w, kind: all-reduce, size: 64KiB, messages: 1, qps: 2}]",
		"[{name: w, kind: all-to-all, size: 64KiB, slice: 4KiB, messages: 1, qps: 3}]",
	} {
		v := loop.NewVirtual(time.Microsecond)
		b := benchOn(t, 4, 1, 2, func(host int) loop.Loop { return v.Node(uint32(host)) })
		all := specs(t, text)
		e, err := NewEngine(b.cfg, all)
		if err != nil {
			t.Fatal(err)
		}
		var r *Report
		e.Start(func(done *Report) { r = done })
		if !v.Run(func() bool { return r != nil }) {
			t.Fatalf("%s: no report", text)
		}
		ends, err := Ends(&all[0], b.cfg.Topology)
		if err != nil {
			t.Fatal(err)
		}
		var want, got []string
		for _, f := range r.Results[0].Flows {
			if f.Src[:2] != f.Dst[:2] { // of two hosts
				want = append(want, fmt.Sprint(f.Index, f.Src, f.Dst))
			}
		}
		for _, e := range ends {
			got = append(got, fmt.Sprint(e.Index, portName(e.Src), portName(e.Dst)))
		}
		if !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("%s: Ends says %q, the results %q", text, got, want)
		}
	}
}
