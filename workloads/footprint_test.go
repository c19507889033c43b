package workloads

import "testing"

func TestTheFootprintHoldsWhatWorkloadsRegisterAndLittleMore(t *testing.T) {
	for _, text := range []string{
		"{name: w, kind: all-pairs, size: 64KiB, messages: 4}",
		"{name: w, kind: all-pairs, size: 1MiB, messages: 2, qps: 2}",
		"{name: w, kind: write, from: [h1], to: [h2], size: 8B, depth: 64, messages: 200}",
		"{name: w, kind: read, mode: latency, from: [h1], to: [h2], size: 4KiB, messages: 20}",
		"{name: w, kind: send, transport: ud, from: [h1], to: [h2], messages: 20}",
		"{name: w, kind: incast, op: send, from: ['*'], to: [h1], size: 10000, messages: 20}",
		"{name: w, kind: all-reduce, size: 1MiB, messages: 2}",
		"{name: w, kind: all-reduce, size: 100KB, slice: 1KiB, qps: 3, messages: 2}",
		"{name: w, kind: all-to-all, size: 1MiB, slice: 4KiB, messages: 2}",
	} {
		b := newBench(t, 4, 1, 1)
		b.pass("[" + text + "]")
		took := uint64(0)
		for _, d := range b.devs {
			at := make(chan uint64, 1)
			d.l.Post(func() { at <- d.allocated })
			took += <-at
		}
		s := specs(t, "["+text+"]")
		if said, _ := s[0].footprint(b.top); said < took || float64(said) > 1.2*float64(took) {
			t.Errorf("%s\ntook %d bytes, the footprint says %d", text, took, said)
		}
		if all := Footprint(append(s, s...), b.top); all < 2*took {
			t.Errorf("%s\ntwo of them: %d bytes, one took %d", text, all, took)
		}
	}
}
