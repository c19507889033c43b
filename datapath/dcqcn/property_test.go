package dcqcn

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

// settings are the parameter sets that orders of events are tried on: every profile, and
// knobs that no profile turns.
func settings(t testing.TB) []*Reaction {
	t.Helper()
	var out []*Reaction
	add := func(p Params, line Rate) {
		r, err := NewReaction(p, line)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	for i, p := range Profiles() {
		add(p.Params, []Rate{10 * Gbps, 40 * Gbps, 100 * Gbps, 400 * Gbps}[i%4])
	}
	p := named(t, "paper").Params
	p.RateToSetOnFirstCNP, p.RateReduceMonitorPeriod, p.ClampTgtRate = 7*Gbps, 120*time.Microsecond, false
	p.RPGMinRate, p.RPGMinDecFac, p.RPGByteReset = 333*Mbps+1, 60, 100*KB
	add(p, 25*Gbps)
	p.AlphaUpdate, p.RPGGD, p.DCETCPG, p.RPGTimeReset, p.RPGMinDecFac = AlphaPerPeriod, 10, 0, 0, 0
	add(p, 25*Gbps)
	return out
}

// play gives an order of events, read from bytes, to two flows of the same parameters. One has
// a timer and is asked at odd times, the other catches up when something happens; they must
// agree, and stay within bounds.
func play(t *testing.T, r *Reaction, script []byte) {
	eager, lazy := r.Flow(), r.Flow()
	var now, lastCut loop.Time
	for i := 0; i+2 < len(script); i += 3 {
		kind, size := script[i]%8, loop.Time(script[i+1])<<8|loop.Time(script[i+2])
		now += size << (kind & 3 * 2) // up to 4 ms, now and then 0
		for {
			at, ok := eager.NextTimer()
			if !ok || at > now {
				break
			}
			before, cut := eager.Rate(), eager.cutAt
			eager.OnTimer(at)
			if eager.Rate() < before && eager.cutAt == cut {
				t.Fatalf("event %d: without a decrease the timer lowered %v to %v", i/3, before, eager.Rate())
			}
			if eager.cutAt != cut {
				if at.Sub(lastCut) < r.params.RateReduceMonitorPeriod {
					t.Fatalf("event %d: decreases at %v and %v", i/3, lastCut, at)
				}
				lastCut = at
			}
		}
		switch before, alpha, due := eager.Rate(), eager.Alpha(now), eager.cutDue; {
		case kind < 3:
			cut, first := eager.cutAt, !eager.seen
			eager.OnCNP(now)
			lazy.OnCNP(now)
			if eager.Rate() > before {
				t.Fatalf("event %d: a CNP raised %v to %v", i/3, before, eager.Rate())
			}
			if first || eager.cutAt != cut {
				if !first && now.Sub(lastCut) < r.params.RateReduceMonitorPeriod {
					t.Fatalf("event %d: decreases at %v and %v", i/3, lastCut, now)
				}
				lastCut = now
			}
			if r.params.AlphaUpdate == AlphaPerCNP && eager.Alpha(now) < alpha {
				t.Fatalf("event %d: a CNP lowered α from %v to %v", i/3, alpha, eager.Alpha(now))
			}
		case kind < 7:
			eager.OnSent(now, Bytes(size)<<4)
			lazy.OnSent(now, Bytes(size)<<4)
			if eager.Rate() < before && !due {
				t.Fatalf("event %d: sending lowered %v to %v", i/3, before, eager.Rate())
			}
		default:
			eager.OnTimer(now)
		}
		seen := lazy
		seen.OnTimer(now)
		if eager.Rate() != seen.Rate() || eager.Target() != seen.Target() || eager.Alpha(now) != seen.Alpha(now) || eager.Limited() != seen.Limited() {
			t.Fatalf("event %d at %v: with a timer %v → %v, α %v; without %v → %v, α %v", i/3, now,
				eager.Rate(), eager.Target(), eager.Alpha(now), seen.Rate(), seen.Target(), seen.Alpha(now))
		}
		if p := &r.params; eager.Rate() < p.RPGMinRate || eager.Rate() > eager.Target() || eager.Target() > r.line ||
			eager.Limited() != (eager.Rate() < r.line) || eager.Alpha(now) < 0 || eager.Alpha(now) > 1 {
			t.Fatalf("event %d: rate %v, target %v, line %v, least %v, α %v, limited %v", i/3,
				eager.Rate(), eager.Target(), r.line, p.RPGMinRate, eager.Alpha(now), eager.Limited())
		}
	}
}

func FuzzAnyOrderOfEventsKeepsTheRateInBoundsAndNeedsNoTimers(f *testing.F) {
	all := settings(f)
	rng := rand.New(rand.NewPCG(2, 3))
	for i := range 400 {
		script := make([]byte, 3+rng.IntN(600))
		for j := range script {
			script[j] = byte(rng.Uint32())
			if i%3 == 0 && j%3 == 1 {
				script[j] &= 3 // events close together
			}
		}
		f.Add(uint8(i), script)
	}
	f.Fuzz(func(t *testing.T, which uint8, script []byte) { play(t, all[int(which)%len(all)], script) })
}

// Of two flows that differ in their rate alone, each event leaves the slower one no faster.
func TestAReactionNeverTurnsTheOrderOfTwoFlows(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 8))
	for _, r := range settings(t) {
		for range 300 {
			slow := r.Flow()
			slow.OnCNP(0)
			for now := loop.Time(0); rng.IntN(6) > 0; now += loop.Time(rng.IntN(200_000)) {
				slow.OnCNP(now)
			}
			fast := slow
			slow.rate -= Rate(rng.Uint64N(uint64(slow.rate-r.params.RPGMinRate) + 1))
			fast.limited, slow.limited = fast.rate < r.line, slow.rate < r.line
			now := slow.cutAt + loop.Time(rng.IntN(1_000_000))
			for _, rp := range []*RP{&slow, &fast} {
				rp.OnTimer(now)
			}
			if slow.Rate() > fast.Rate() {
				t.Fatalf("recovery brought the slower to %v, the faster to %v", slow.Rate(), fast.Rate())
			}
			for _, rp := range []*RP{&slow, &fast} {
				rp.OnCNP(now)
				rp.OnTimer(rp.cutAllowed())
			}
			if slow.Rate() > fast.Rate() {
				t.Fatalf("a CNP brought the slower to %v, the faster to %v", slow.Rate(), fast.Rate())
			}
		}
	}
}

func TestNothingAllocates(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	rp := flow(t, "ns3-rdma", 40*Gbps, nil)
	np := newNP(t, 50*time.Microsecond, 64)
	cp := CP{named(t, "paper").Marking, rand.NewPCG(1, 2)}
	var now loop.Time
	round := func() {
		for range 2000 {
			now += 900
			if cp.Mark(Bytes(rng.IntN(300_000))) && np.OnMarked(now, rng.Uint32N(100)) {
				rp.OnCNP(now)
			}
			rp.OnSent(now, 1000)
			rp.OnTimer(now)
		}
	}
	round()
	if n := testing.AllocsPerRun(20, round); n != 0 {
		t.Errorf("2000 packets allocate %v times", n)
	}
}
