package workloads

import (
	"math"
	"net/netip"
	"strings"
	"testing"
)

func TestAllReduceLeavesEveryRankWithTheSum(t *testing.T) {
	for _, c := range []struct {
		name, spec        string
		hosts, nics, gpus int
	}{
		{"eight ranks", "{name: w, kind: all-reduce, size: 256KiB, messages: 3}", 8, 1, 1},
		{"float32", "{name: w, kind: all-reduce, data_type: float32, size: 100KB, slice: 4KiB, messages: 3}", 5, 1, 1},
		{"two ranks", "{name: w, kind: all-reduce, size: 64KiB, messages: 5}", 2, 1, 1},
		{"fewer elements than a slice", "{name: w, kind: all-reduce, size: 52B, messages: 20}", 4, 1, 1},
		{"several queue pairs", "{name: w, kind: all-reduce, size: 100KB, slice: 1KiB, qps: 3, messages: 3}", 4, 1, 1},
		{"several GPUs a host, several rails", "{name: w, kind: all-reduce, size: 64KiB, slice: 4KiB, messages: 3}", 3, 2, 4},
		{"one host's GPUs apart in the ring", "{name: w, kind: all-reduce, size: 64KiB, slice: 4KiB, messages: 3, ranks: ['*:gpu0', '*:gpu1']}", 3, 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := newBench(t, c.hosts, c.nics, c.gpus).pass("[" + c.spec + "]")
			n := float64(res.Ranks)
			if res.Ranks < 2 || res.Bytes == 0 || res.VerifiedBytes != res.Bytes || res.WrongBytes != 0 {
				t.Errorf("%d ranks, %d bytes, %d verified, %d wrong", res.Ranks, res.Bytes, res.VerifiedBytes, res.WrongBytes)
			}
			if want := res.AlgBwBps * 2 * (n - 1) / n; res.AlgBwBps <= 0 || math.Abs(res.BusBwBps-want) > 1 {
				t.Errorf("algorithm bandwidth %v, bus bandwidth %v, want %v", res.AlgBwBps, res.BusBwBps, want)
			}
		})
	}
}

// Each rank sends 2(n−1)/n of the buffer, as the algorithm's name for being optimal says.
func TestAllReduceSendsNoMoreThanItMust(t *testing.T) {
	res := newBench(t, 8, 1, 1).pass("[{name: w, kind: all-reduce, size: 256KiB, messages: 2}]")
	if want := uint64(2 * 8 * (256 << 10) * 2 * 7 / 8); res.Bytes != want || len(res.Flows) != 8 {
		t.Errorf("%d bytes by %d flows, want %d by 8", res.Bytes, len(res.Flows), want)
	}
}

func TestAllToAllDeliversEveryBlock(t *testing.T) {
	for _, c := range []struct {
		spec  string
		bytes uint64
	}{
		{"{name: w, kind: all-to-all, size: 64KiB, messages: 3}", 3 * 4 * 3 * 16384},
		{"{name: w, kind: all-to-all, size: 160000B, slice: 1KiB, qps: 3, messages: 2}", 2 * 4 * 3 * 40000},
	} {
		res := newBench(t, 4, 1, 1).pass("[" + c.spec + "]")
		if res.Bytes != c.bytes || res.VerifiedBytes != c.bytes {
			t.Errorf("%s: %d bytes, %d verified, want %d", c.spec, res.Bytes, res.VerifiedBytes, c.bytes)
		}
		if want := res.AlgBwBps * 3 / 4; math.Abs(res.BusBwBps-want) > 1 {
			t.Errorf("bus bandwidth %v, want %v", res.BusBwBps, want)
		}
	}
}

// Blocks for a GPU of the same host are copied and checked, and aren't counted as traffic.
func TestAllToAllInsideAHostIsNoTraffic(t *testing.T) {
	res := newBench(t, 3, 2, 4).pass("[{name: w, kind: all-to-all, size: 96KiB, messages: 2}]")
	if want := uint64(2 * 12 * 8 * 8192); res.Bytes != want || res.VerifiedBytes != want || len(res.Flows) != 12*8 {
		t.Errorf("%d bytes, %d verified, %d flows; want %d by 96", res.Bytes, res.VerifiedBytes, len(res.Flows), want)
	}
}

func TestPlantedCorruptionOfACollectiveIsCaught(t *testing.T) {
	for _, c := range []struct {
		name, spec, what string
		fault            func(*memMsg)
	}{
		{"a flipped byte that is summed up", "kind: all-reduce, size: 64KiB, slice: 4KiB", "sum", func(m *memMsg) { m.after = func(b []byte) { b[5] ^= 1 } }},
		{"a slice that is never placed", "kind: all-reduce, size: 64KiB, slice: 4KiB", "sum", func(m *memMsg) { m.skip = true }},
		{"a flipped byte of a block", "kind: all-to-all, size: 64KiB, slice: 4KiB", "payload", func(m *memMsg) { m.after = func(b []byte) { b[5] ^= 1 } }},
		{"a block that is never placed", "kind: all-to-all, size: 64KiB, slice: 4KiB", "payload", func(m *memMsg) { m.skip = true }},
		{"a byte of a rank's own block, which nobody sends", "kind: all-to-all, size: 64KiB, slice: 4KiB", "guard", func(m *memMsg) {
			if m.from.attr.AH.DGID == netip.MustParseAddr("10.0.0.2") {
				m.after = func(b []byte) { b[:16385][16384] ^= 1 }
			}
		}},
		{"a byte behind a slice", "kind: all-reduce, size: 64KiB, slice: 4KiB", "guard", func(m *memMsg) { m.after = func(b []byte) { b[:len(b)+9][len(b)+8]++ } }},
	} {
		b := newBench(t, 4, 1, 1)
		seen := map[*memQP]int{}
		b.net.meddle = func(m *memMsg) { // the third unit of one rank's lanes
			b.mu.Lock()
			defer b.mu.Unlock()
			if seen[m.from]++; m.from.d == b.devs[0] && seen[m.from] == 3 {
				c.fault(m)
			}
		}
		res := b.run("[{name: w, " + c.spec + ", messages: 2}]").Results[0]
		if res.Passed || res.Violations == 0 || !strings.Contains(res.Failure, c.what) {
			t.Errorf("%s: passed %v, %d violations, %q; want one of %s", c.name, res.Passed, res.Violations, res.Failure, c.what)
		}
	}
}

func TestACollectiveWhoseQueuePairFailsEndsAndSaysWhy(t *testing.T) {
	for _, kind := range []string{"all-reduce", "all-to-all"} {
		b := newBench(t, 4, 1, 1)
		b.net.meddle = func(m *memMsg) { m.drop = m.from.d == b.devs[2] }
		res := b.run("[{name: w, kind: " + kind + ", size: 64KiB, messages: 5}]").Results[0]
		if res.Passed || !strings.Contains(res.Failure, "RETRY_EXC_ERR") || !strings.Contains(res.Failure, "h3:gpu0") {
			t.Errorf("%s: passed %v, failure %q", kind, res.Passed, res.Failure)
		}
		res = b.run("[{name: w, kind: " + kind + ", size: 64KiB, messages: 5, expect_error: retry-exceeded}]").Results[0]
		if !res.Passed || len(res.Statuses) != 1 {
			t.Errorf("%s that expects the error: failed with %q, statuses %v", kind, res.Failure, res.Statuses)
		}
	}
}

func TestADurationEndsACollectiveAfterAWholeIteration(t *testing.T) {
	res := newBench(t, 4, 1, 1).pass("[{name: w, kind: all-reduce, size: 64KiB, duration: 50ms}]")
	if res.Iterations < 1 || res.VerifiedBytes != res.Bytes {
		t.Errorf("%d iterations, %d of %d bytes verified", res.Iterations, res.VerifiedBytes, res.Bytes)
	}
}
