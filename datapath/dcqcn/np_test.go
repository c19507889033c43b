package dcqcn

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

func newNP(t testing.TB, interval time.Duration, flows int) *NP[uint32] {
	t.Helper()
	n, err := NewNP[uint32](interval, flows)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Whatever order marked packets of whatever flows come in, a CNP goes exactly when the flow's
// last one is an interval or more ago and there is room; a map that never forgets says so.
func TestCNPsOfAFlowKeepTheIntervalAndNoneIsLost(t *testing.T) {
	const interval, room = 50 * time.Microsecond, 16
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := newNP(t, interval, room)
		flows := 1 + rng.IntN(2*room)
		last := map[uint32]loop.Time{}
		var now loop.Time
		var sent, full uint64
		for i := range 5000 {
			now += loop.Time(rng.IntN(8000))
			f := uint32(rng.IntN(flows))
			busy := 0
			for _, at := range last {
				if now.Sub(at) < interval {
					busy++
				}
			}
			at, had := last[f]
			want := !had || now.Sub(at) >= interval
			if want && busy == room {
				want = false
				full++
			}
			if got := n.OnMarked(now, f); got != want {
				t.Fatalf("seed %d, packet %d at %v of flow %d: sent %v, want %v (%d of %d busy)", seed, i, now, f, got, want, busy, room)
			}
			if want {
				last[f] = now
				sent++
			}
			if n.Flows() > room {
				t.Fatalf("it remembers %d flows, made for %d", n.Flows(), room)
			}
		}
		if c := n.Counters; c.ECNMarked != 5000 || c.CNPSent != sent || c.TableFull != full || c.Suppressed != 5000-sent-full {
			t.Errorf("seed %d: %+v, want %d sent, %d without room", seed, c, sent, full)
		}
	}
}

func TestAnIntervalOfZeroAnswersEveryMarkedPacket(t *testing.T) {
	n := newNP(t, 0, 1)
	for i := range uint32(10) {
		if !n.OnMarked(0, i%2) {
			t.Error("a marked packet went unanswered")
		}
	}
	if n.Counters != (NPCounters{CNPSent: 10, ECNMarked: 10}) || n.Flows() != 0 {
		t.Errorf("%+v, %d flows", n.Counters, n.Flows())
	}
}

func TestOneFlowAtLineRateGetsACNPAnInterval(t *testing.T) {
	n := newNP(t, 50*time.Microsecond, 4)
	for now := loop.Time(0); now < loop.Time(time.Millisecond); now += 200 {
		n.OnMarked(now, 1)
	}
	if n.Counters.CNPSent != 20 {
		t.Errorf("%d CNPs in a millisecond, want 20", n.Counters.CNPSent)
	}
}

func TestANotificationPointNeedsRoomAndAnInterval(t *testing.T) {
	if _, err := NewNP[int](-1, 1); err == nil {
		t.Error("a negative interval was taken")
	}
	if _, err := NewNP[int](1, 0); err == nil {
		t.Error("no room was taken")
	}
}
