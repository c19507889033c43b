package rnic

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// Messages of eight packets: one is lost the first time that it passes, another when it is sent again. rxe goes back at the NAK of the first, and at that of a later one if
// an ACK has come since, or if the NAK is of another message: then it says that one is done. Else the timer has to end (rxe_comp.c, started_retry).
func TestWhoHeedsOneNAKWaitsForTheTimerWhenASecondPacketOfAMessageIsMissing(t *testing.T) {
	for _, c := range []struct {
		name     string
		lost     []int // packets of the stream, the nth the nth time that it passes
		every    int   // after how many packets an ACK is asked for
		timeouts uint64
	}{
		{"one packet", []int{2}, 0, 0},
		{"two packets of a message", []int{2, 5}, 0, 1},
		{"three packets of a message", []int{2, 4, 6}, 0, 2},
		{"two packets of a message, and an ACK between them", []int{2, 5}, 2, 0},
		{"packets of two messages", []int{2, 9}, 0, 0},
		{"the first packets of two messages", []int{0, 8}, 0, 0},
	} {
		for _, one := range []bool{false, true} {
			l := newLab(false)
			l.config = func(cfg *Config) { cfg.Profile.OneNAK, cfg.Profile.AckRequestEvery = one, c.every }
			e := l.pairOf(t, verbs.RC, 24*1024, func(_ int, _ *verbs.QPInit, a *verbs.QPAttr) { a.Timeout = 6 })
			first := e[0].qp.tx.psn
			lost, passed := map[roce.PSN]int{}, map[roce.PSN]int{}
			for i, n := range c.lost {
				lost[first.Add(n)] = i + 1
			}
			l.wires[0].tap = func(f *link.Frame) bool {
				psn := f.Packet.BTH.PSN
				passed[psn]++
				return passed[psn] != lost[psn]
			}
			begun := l.v.Now()
			for i := range 3 {
				e[0].post(t, e[0].write(e[1], uint64(i), 8*1024))
			}
			for _, wc := range l.await(t, e[0], 3) {
				if wc.Status != verbs.Success {
					t.Fatalf("%s, one NAK %v: %v", c.name, one, wc.Status)
				}
			}
			want := uint64(0)
			if one {
				want = c.timeouts
			}
			n := e[0].Counters()
			if n.LocalAckTimeoutErr != want || n.PacketSeqErr != uint64(len(c.lost)) || n.Retries != uint64(len(c.lost)) {
				t.Errorf("%s, one NAK %v: %d timeouts, want %d; %d NAKs and %d times back, want %d of each", c.name, one, n.LocalAckTimeoutErr, want, n.PacketSeqErr, n.Retries, len(c.lost))
			}
			if took := l.v.Now().Sub(begun); (took >= verbs.AckTimeout(6)) != (want > 0) {
				t.Errorf("%s, one NAK %v: took %v, the timeout is %v", c.name, one, took, verbs.AckTimeout(6))
			}
		}
	}
}

// It is deaf after a timeout as well.
func TestWhoHeedsOneNAKHeedsNoneAfterATimeoutEither(t *testing.T) {
	for _, one := range []bool{false, true} {
		l := newLab(false)
		l.config = func(cfg *Config) { cfg.Profile.OneNAK, cfg.Profile.AckRequestEvery = one, 0 }
		e := l.pairOf(t, verbs.RC, 8*1024, func(_ int, _ *verbs.QPInit, a *verbs.QPAttr) { a.Timeout = 6 })
		first, passed := e[0].qp.tx.psn, 0
		l.wires[0].tap = func(f *link.Frame) bool {
			passed++
			return passed > 8 && (passed > 16 || f.Packet.BTH.PSN != first.Add(4)) // all of the first round, a packet of the second
		}
		e[0].post(t, e[0].write(e[1], 1, 8*1024))
		if wc := l.await(t, e[0], 1)[0]; wc.Status != verbs.Success {
			t.Fatal(wc.Status)
		}
		want := uint64(1)
		if one {
			want = 2
		}
		if n := e[0].Counters(); n.LocalAckTimeoutErr != want || n.PacketSeqErr != 1 {
			t.Errorf("one NAK %v: %d timeouts after %d NAKs, want %d after one", one, n.LocalAckTimeoutErr, n.PacketSeqErr, want)
		}
	}
}

func TestJitterMakesFramesLateByLessThanItsMostAndCostsNeitherOrderNorRate(t *testing.T) {
	const size = 1 << 20
	arrivals := func(jitter time.Duration, seed uint64) (at []loop.Time) {
		l := newLab(false)
		l.config = func(c *Config) { c.Profile.Stages.Jitter, c.Seed = jitter, seed }
		e := l.pairOf(t, verbs.RC, size, nil)
		last := roce.PSN(0)
		l.wires[0].hold = func(f *link.Frame, end loop.Time) loop.Time {
			if psn := f.Packet.BTH.PSN; len(at) > 0 && psn != last.Next() {
				t.Fatalf("PSN %d follows %d", psn, last)
			}
			last = f.Packet.BTH.PSN
			at = append(at, end)
			return end
		}
		e[0].post(t, e[0].write(e[1], 1, size))
		l.await(t, e[0], 1)
		return at
	}
	const most = 500 * time.Nanosecond
	exact, late, same, other := arrivals(0, 1), arrivals(most, 1), arrivals(most, 1), arrivals(most, 2)
	var sum time.Duration
	differ := 0
	for i, end := range exact {
		d := late[i].Sub(end)
		if d < 0 || d >= most {
			t.Fatalf("frame %d is late by %v, most is %v", i, d, most)
		}
		if late[i] != same[i] {
			t.Fatalf("frame %d is on the wire at %v, and with the same seed at %v", i, late[i], same[i])
		}
		if late[i] != other[i] {
			differ++
		}
		sum += d
	}
	if mean := sum / time.Duration(len(exact)); mean < most*2/5 || mean > most*7/10 || differ < len(exact)/2 {
		t.Errorf("%d frames are late by %v on average, of %v at most; another seed moves %d of them", len(exact), mean, most, differ)
	}
}
