package workloads

import (
	"strings"
	"sync/atomic"
	"testing"
)

func TestEveryOperationIsVerifiedWhole(t *testing.T) {
	for _, c := range []struct {
		name, spec string
		flows      int
		bytes, per uint64
	}{
		{"write", "{name: w, kind: write, from: [h1], to: [h2], size: 64KiB, messages: 50}", 1, 50 << 16, 1 << 16},
		{"write of odd size", "{name: w, kind: write, from: [h1], to: [h2], size: 1001B, messages: 777}", 1, 1001 * 777, 1001},
		{"write of one byte", "{name: w, kind: write, from: [h1], to: [h2], size: 1B, messages: 500}", 1, 500, 1},
		{"write larger than the budget", "{name: w, kind: write, from: [h1], to: [h2], size: 1000001B, messages: 7}", 1, 7 * 1000001, 1000001},
		{"write by bytes, rounded up", "{name: w, kind: write, from: [h1], to: [h2], size: 4KiB, bytes: 9KiB}", 1, 3 << 12, 1 << 12},
		{"write, several queue pairs", "{name: w, kind: write, from: [h1], to: [h2], size: 4KiB, messages: 100, qps: 5}", 5, 5 * 100 << 12, 1 << 12},
		{"write, selective signalling", "{name: w, kind: write, from: [h1], to: [h2], size: 4KiB, messages: 101, depth: 8, signaling: selective}", 1, 101 << 12, 1 << 12},
		{"write latency", "{name: w, kind: write, mode: latency, from: [h1], to: [h2], messages: 100}", 1, 800, 8},
		{"read", "{name: w, kind: read, from: [h1], to: [h2], size: 64KiB, messages: 50}", 1, 50 << 16, 1 << 16},
		{"read larger than the budget", "{name: w, kind: read, from: [h1], to: [h2], size: 1000001B, messages: 7}", 1, 7 * 1000001, 1000001},
		{"read, selective signalling", "{name: w, kind: read, from: [h1], to: [h2], size: 1KiB, messages: 100, depth: 7, signaling: selective}", 1, 100 << 10, 1 << 10},
		{"send", "{name: w, kind: send, from: [h1], to: [h2], size: 64KiB, messages: 50}", 1, 50 << 16, 1 << 16},
		{"send larger than the budget", "{name: w, kind: send, from: [h1], to: [h2], size: 1000001B, messages: 7}", 1, 7 * 1000001, 1000001},
		{"send on uc", "{name: w, kind: send, transport: uc, from: [h1], to: [h2], size: 10000B, messages: 100}", 1, 100 * 10000, 10000},
		{"send on ud", "{name: w, kind: send, transport: ud, from: [h1], to: [h2], size: 1000B, messages: 100}", 1, 100 * 1000, 1000},
		{"write on uc", "{name: w, kind: write, transport: uc, from: [h1], to: [h2], size: 10000B, messages: 100}", 1, 100 * 10000, 10000},
		{"fetch and add", "{name: w, kind: atomic, from: [h1], to: [h2], messages: 300}", 1, 2400, 8},
		{"fetch and add, selective signalling", "{name: w, kind: atomic, from: [h1], to: [h2], messages: 300, depth: 6, signaling: selective}", 1, 2400, 8},
		{"compare and swap", "{name: w, kind: atomic, atomic: cmp_swap, from: [h1], to: [h2], messages: 300}", 1, 2400, 8},
		{"incast of writes", "{name: w, kind: incast, from: ['*'], to: [h3], size: 4KiB, messages: 40}", 3, 3 * 40 << 12, 1 << 12},
		{"incast of reads", "{name: w, kind: incast, op: read, from: ['*'], to: [h3], size: 4KiB, messages: 40}", 3, 3 * 40 << 12, 1 << 12},
		{"incast of additions to one counter", "{name: w, kind: incast, op: atomic, from: ['*'], to: [h3], qps: 2, messages: 200}", 6, 6 * 200 * 8, 8},
		{"all pairs", "{name: w, kind: all-pairs, size: 4KiB, messages: 20}", 12, 12 * 20 << 12, 1 << 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := newBench(t, 4, 1, 1).pass("[" + c.spec + "]")
			if res.Bytes != c.bytes || res.VerifiedBytes != c.bytes || res.WrongBytes != 0 || res.Messages != c.bytes/c.per {
				t.Errorf("%d bytes, %d verified, %d wrong, %d messages; want %d, %d, 0, %d", res.Bytes, res.VerifiedBytes, res.WrongBytes, res.Messages, c.bytes, c.bytes, c.bytes/c.per)
			}
			if len(res.Flows) != c.flows {
				t.Errorf("%d flows, want %d", len(res.Flows), c.flows)
			}
			for _, f := range res.Flows {
				if f.Bytes*uint64(c.flows) != c.bytes {
					t.Errorf("%s→%s carried %d bytes of %d by %d flows", f.Src, f.Dst, f.Bytes, c.bytes, c.flows)
				}
			}
			if res.GoodputBps <= 0 || res.Latency.Count == 0 || res.Latency.Min > res.Latency.P50 || res.Latency.P50 > res.Latency.Max {
				t.Errorf("goodput %v, latency %+v make no sense", res.GoodputBps, res.Latency)
			}
		})
	}
}

func TestAWorkloadWaitsForTheOneBefore(t *testing.T) {
	r := newBench(t, 2, 1, 1).run(`
- {name: second, kind: read, from: [h1], to: [h2], messages: 5, after: first, start: 2ms}
- {name: first, kind: write, from: [h1], to: [h2], messages: 5, start: 1ms}`)
	second, first := r.Results[0], r.Results[1]
	if !r.Passed() {
		t.Fatalf("failed: %s %s", second.Failure, first.Failure)
	}
	if first.Start.Sub(r.Zero) < 1e6 || second.Start.Sub(first.End) < 2e6 {
		t.Errorf("zero %d, first %d–%d, second from %d: want 1 ms after zero, and 2 ms after the first's end", r.Zero, first.Start, first.End, second.Start)
	}
}

// corrupting a byte behind the engine's back, in whatever way, must not pass.
func TestPlantedCorruptionIsCaught(t *testing.T) {
	flip := func(at int) func(*memMsg) {
		return func(m *memMsg) { m.after = func(b []byte) { b[at] ^= 0x10 } }
	}
	for _, c := range []struct {
		name, spec, what string
		fault            func(*memMsg)
	}{
		{"a flipped byte of a write", "kind: write", "message 3, offset 77: payload", flip(77)},
		{"the last byte of a write", "kind: write", "message 3, offset 4095: payload", flip(4095)},
		{"a flipped byte of a read", "kind: read", "message 3, offset 78: payload", flip(78)},
		{"a flipped byte of a send", "kind: send", "message 3, offset 79: payload", flip(79)},
		{"a flipped byte on uc", "kind: write, transport: uc", "message 3, offset 80: payload", flip(80)},
		{"a flipped byte on ud", "kind: send, transport: ud", "message 3, offset 81: payload", flip(81)},
		{"a write that is acknowledged but not placed", "kind: write", "message 3, offset 0: payload", func(m *memMsg) { m.skip = true }},
		{"a send that is delivered but not placed", "kind: send", "message 3, offset 0: payload", func(m *memMsg) { m.skip = true }},
		{"a byte behind a write", "kind: write", "guard", func(m *memMsg) { m.after = func(b []byte) { b[:len(b)+3][len(b)+2]++ } }},
		{"an addition that happens twice", "kind: atomic", "message 4, offset 0: atomic", func(m *memMsg) { m.twice = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 2, 1, 1)
			n := 0
			b.net.meddle = func(m *memMsg) {
				if n++; n == 4 {
					c.fault(m)
				}
			}
			size := "size: 4096B"
			if strings.Contains(c.spec, "atomic") {
				size = "size: 8B"
			}
			r := b.run("[{name: w, " + c.spec + ", from: [h1], to: [h2], " + size + ", messages: 40}]")
			res := r.Results[0]
			if res.Passed || res.Violations == 0 {
				t.Fatalf("passed, with %d violations", res.Violations)
			}
			if got := res.Examples[0].String(); !strings.Contains(got, c.what) {
				t.Errorf("found %q, want %q", got, c.what)
			}
		})
	}
}

// An addition to a shared counter that happens twice, or not at all, shows in the sum even
// though each flow sees a growing counter.
func TestALostOrDoubledAdditionToASharedCounterIsCaught(t *testing.T) {
	b := newBench(t, 4, 1, 1)
	n := 0
	b.net.meddle = func(m *memMsg) {
		if n++; n == 30 {
			m.twice = true
		}
	}
	r := b.run("[{name: w, kind: incast, op: atomic, from: [h1, h2, h3], to: [h4], messages: 40}]")
	if res := r.Results[0]; res.Passed || !strings.Contains(res.Failure, "atomic: want 0x78, got 0x79") {
		t.Errorf("passed %v, failure %q; want 121 where 120 should be", res.Passed, res.Failure)
	}
}

func TestLossOnUnreliableServicesLeavesGapsAndNothingElse(t *testing.T) {
	for _, s := range []string{"kind: send, transport: uc", "kind: write, transport: uc", "kind: send, transport: ud"} {
		b := newBench(t, 2, 1, 1)
		b.cfg.ControlTimeout = 100e6 * 8
		n, dropped := 0, uint64(0)
		b.net.meddle = func(m *memMsg) {
			if n++; n%7 == 0 || n >= 195 { // the last ones too
				m.drop = true
				dropped++
			}
		}
		res := b.pass("[{name: w, " + s + ", from: [h1], to: [h2], size: 1000B, messages: 200}]")
		if want := (200 - dropped) * 1000; res.Lost != dropped || res.Bytes != want || res.VerifiedBytes != want {
			t.Errorf("%s: %d lost, %d bytes, %d verified; want %d, %d, %d", s, res.Lost, res.Bytes, res.VerifiedBytes, dropped, want, want)
		}
	}
}

func TestDuplicatesOnUnreliableServicesAreCountedNotTrusted(t *testing.T) {
	for _, kind := range []string{"kind: send, transport: ud", "kind: send, transport: uc", "kind: write, transport: uc"} {
		b := newBench(t, 2, 1, 1)
		n := 0
		b.net.meddle = func(m *memMsg) { n++; m.twice = n%10 == 0 }
		res := b.pass("[{name: w, " + kind + ", from: [h1], to: [h2], size: 1000B, messages: 100}]")
		if res.Duplicates == 0 || res.Bytes+res.Lost*1000 != 100*1000 || res.VerifiedBytes != res.Bytes {
			t.Errorf("%s: %d duplicates, %d lost, %d bytes, %d verified; want some, and each message counted once", kind, res.Duplicates, res.Lost, res.Bytes, res.VerifiedBytes)
		}
	}
}

// A UC responder takes a message's first packet whatever its PSN: a WRITE that comes again, much
// later, lands on the message that has its place by then.
func TestALateUCWriteIsNoWrongByteButACorruptOneIs(t *testing.T) {
	for _, corrupt := range []bool{false, true} {
		b := newBench(t, 2, 1, 1)
		var old []byte
		b.net.meddle = func(m *memMsg) {
			switch m.wr.ID {
			case 3:
				old = m.payload
			case 3 + 2*4: // the same slot, two rounds on
				m.after = func(placed []byte) {
					copy(placed, old)
					if corrupt {
						placed[500]++
					}
				}
			}
		}
		res := b.run("[{name: w, kind: write, transport: uc, from: [h1], to: [h2], size: 1000B, messages: 60, depth: 4}]").Results[0]
		if corrupt == res.Passed {
			t.Errorf("corrupt %v: passed %v, %s", corrupt, res.Passed, res.Failure)
		}
		if !corrupt && (res.Bytes != 59000 || res.VerifiedBytes != 59000 || res.OutOfOrder != 1) {
			t.Errorf("%d bytes, %d verified, %d out of order; want 59000 twice, and the message on top of another", res.Bytes, res.VerifiedBytes, res.OutOfOrder)
		}
	}
}

func TestNothingIsSentBeforeTheGateOpens(t *testing.T) {
	b := newBench(t, 2, 1, 1)
	var sent atomic.Int32
	b.net.meddle = func(*memMsg) { sent.Add(1) }
	asked := make(chan func(), 1)
	b.cfg.Gate = func(open func()) { asked <- open }
	_, done := b.start("[{name: w, kind: write, from: [h1], to: [h2], messages: 5}, {name: next, kind: write, from: [h1], to: [h2], messages: 5, after: w}]")
	open := <-asked
	opened := b.cfg.NICs[0].Device.Loop().Now()
	if n := sent.Load(); n > 0 {
		t.Errorf("%d messages were sent before", n)
	}
	open()
	if r := b.wait(done); !r.Passed() || r.Zero <= opened || sent.Load() < 10 {
		t.Errorf("passed %v, time zero at %v and the gate opened at %v, %d messages sent", r.Passed(), r.Zero, opened, sent.Load())
	}
}

func TestARunThatIsStoppedAtTheGateSendsNothing(t *testing.T) {
	b := newBench(t, 2, 1, 1)
	asked := make(chan func(), 1)
	b.cfg.Gate = func(open func()) { asked <- open }
	e, done := b.start("[{name: w, kind: write, from: [h1], to: [h2], messages: 5}]")
	open := <-asked
	e.Stop(t.Context())
	open()
	if w := b.wait(done).Results[0]; w.Messages > 0 || !strings.Contains(w.Failure, "never ran") {
		t.Errorf("%d messages, %q", w.Messages, w.Failure)
	}
}
