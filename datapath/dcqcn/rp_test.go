package dcqcn

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

const us = loop.Time(time.Microsecond)

// flow makes a flow with a profile's parameters, changed.
func flow(t testing.TB, profile string, line Rate, change func(*Params)) *RP {
	t.Helper()
	p := named(t, profile).Params
	if change != nil {
		change(&p)
	}
	r, err := NewReaction(p, line)
	if err != nil {
		t.Fatal(err)
	}
	rp := r.Flow()
	return &rp
}

// near allows for whole bits per second, one rounding an event.
func near(t *testing.T, what string, got Rate, want float64, events int) {
	t.Helper()
	if d := math.Abs(float64(got) - want); d > float64(events)+1 {
		t.Errorf("%s: %d bit/s, want %.1f", what, got, want)
	}
}

func nearAlpha(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-12 {
		t.Errorf("%s: α is %.15f, want %.15f", what, got, want)
	}
}

// R_k = line · Π (1 − α_j/2), α_j = 1 − (1 − α_1)(1−g)^(j−1) while no period passes without a CNP.
func TestRateAfterCNPsInARowFollowsTheClosedForm(t *testing.T) {
	for _, initial := range []uint32{1024, 512, 100, 1} {
		rp := flow(t, "paper", 40*Gbps, func(p *Params) { p.InitialAlphaValue = initial })
		want, a1 := 40e9, float64(initial)/1024
		for k := 1; k <= 12; k++ {
			now := loop.Time(k) * 50 * us // the period of α is 55 µs
			alpha := 1 - (1-a1)*math.Pow(255./256, float64(k-1))
			want *= 1 - alpha/2
			rp.OnCNP(now)
			near(t, fmt.Sprintf("initial α %d/1024, CNP %d", initial, k), rp.Rate(), want, k)
			nearAlpha(t, fmt.Sprintf("after CNP %d", k), rp.Alpha(now), 1-(1-a1)*math.Pow(255./256, float64(k)))
		}
	}
}

// Between CNPs α falls by 1−g for each whole period since the last one: (1−g)^n.
func TestAlphaDecaysByTheClosedForm(t *testing.T) {
	rp := flow(t, "paper", 40*Gbps, nil)
	rp.OnCNP(0)
	for _, n := range []int64{0, 1, 2, 7, 255, 256, 1000, 100_000} {
		want := math.Pow(255./256, float64(n))
		nearAlpha(t, fmt.Sprintf("at the start of period %d", n), rp.Alpha(loop.Time(n)*55*us), want)
		nearAlpha(t, fmt.Sprintf("at the end of period %d", n), rp.Alpha(loop.Time(n+1)*55*us-1), want)
	}
	if a := rp.Alpha(math.MaxInt64); a != 0 {
		t.Errorf("after 292 years α is %v", a)
	}
	// CNPs every D: α just before the k-th tends to (1−g)^m g / (1 − (1−g)^(m+1)), m = ⌊D/K⌋.
	for _, m := range []int64{1, 4, 20} {
		rp := flow(t, "paper", 40*Gbps, nil)
		d := loop.Time(m)*55*us + 7
		for k := range loop.Time(5000) {
			rp.OnCNP(k * d)
		}
		w := 255. / 256
		nearAlpha(t, fmt.Sprintf("a CNP every %d periods", m), rp.Alpha(5000*d), math.Pow(w, float64(m))*(1-w)/(1-math.Pow(w, float64(m+1))))
	}
}

// mlx5 moves α once a period, however many CNPs came: α_n = 1 − (1−α_0)(1−g)^n once n periods
// with a CNP are over. The first CNP starts the first period and does not count in it.
func TestAlphaPerPeriodCountsPeriodsNotCNPs(t *testing.T) {
	const w = 1019. / 1024
	for _, each := range []loop.Time{1, 2, 5} {
		rp := flow(t, "mlx5", 100*Gbps, func(p *Params) { p.InitialAlphaValue = 512 })
		rp.OnCNP(0)
		nearAlpha(t, "a period with the first CNP alone", rp.Alpha(us), 0.5*w)
		for now := us; now < 100*us; now += us / each {
			rp.OnCNP(now)
		}
		nearAlpha(t, "the period that runs does not count yet", rp.Alpha(100*us-1), 1-(1-0.5*w)*math.Pow(w, 98))
		for _, n := range []int64{0, 1, 10, 1000} {
			nearAlpha(t, fmt.Sprintf("%d CNPs a period, %d periods later", each, n), rp.Alpha(loop.Time(100+n)*us),
				(1-(1-0.5*w)*math.Pow(w, 99))*math.Pow(w, float64(n)))
		}
	}
}

// After a decrease from R_T: n fast recoveries leave the gap d_n = d_0/2^n, j additive
// increases d_j = A + (d − A)/2^j with the target j·A higher; hyper increases likewise.
func TestRecoveryByTimerFollowsTheClosedForms(t *testing.T) {
	const T = 55 * us
	rp := flow(t, "paper", 40*Gbps, func(p *Params) { p.RPGByteReset, p.RPGAIRate, p.RPGHAIRate = 0, 40*Mbps, 200*Mbps })
	rp.OnCNP(0)
	rp.OnCNP(0) // 10 Gb/s, target 20
	near(t, "two CNPs", rp.Rate(), 10e9, 0)
	near(t, "two CNPs, target", rp.Target(), 20e9, 0)
	gap, target := 10e9, 20e9
	for n := 1; n <= 30; n++ {
		rp.OnTimer(loop.Time(n)*T - 1)
		near(t, fmt.Sprintf("just before increase %d", n), rp.Rate(), target-gap, n)
		rp.OnTimer(loop.Time(n) * T)
		switch {
		case n <= 5: // fast recovery: 10e9 / 2^n
			gap = 10e9 / math.Exp2(float64(n))
		case n == 6: // one additive increase: with one counter max = min, so hyper follows
			target += 40e6
			gap = 40e6 + (10e9/32-40e6)/2
		default: // hyper: A + (d − A)/2^j
			target += 200e6
			gap = 200e6 + (40e6+(10e9/32-40e6)/2-200e6)/math.Exp2(float64(n-6))
		}
		near(t, fmt.Sprintf("increase %d", n), rp.Rate(), target-gap, n)
		near(t, fmt.Sprintf("increase %d, target", n), rp.Target(), target, n)
	}
}

func TestAdditiveIncreaseLastsWhileOneCounterLags(t *testing.T) {
	const T = 55 * us
	rp := flow(t, "paper", 40*Gbps, func(p *Params) { p.RPGHAIRate = 200 * Mbps })
	rp.OnCNP(0)
	rp.OnCNP(0)
	for j := 1; j <= 100; j++ {
		rp.OnTimer(loop.Time(5+j) * T)
		near(t, fmt.Sprintf("additive increase %d", j), rp.Rate(), 20e9+float64(j)*40e6-(40e6+(10e9/32-40e6)/math.Exp2(float64(j))), 5+j)
	}
	now := loop.Time(105) * T
	// The byte counter's events are no fast recovery: the timer has had its five. After six of
	// them both have had more than F, and the next event of either is a hyper increase.
	for n := 1; n <= 6; n++ {
		before := rp.Target()
		rp.OnSent(now, 10*MB)
		if rp.Target() != before+40*Mbps {
			t.Errorf("byte event %d raised the target by %v", n, rp.Target()-before)
		}
	}
	for n := range 2 {
		before := rp.Target()
		if n == 0 {
			rp.OnSent(now, 10*MB)
		} else {
			rp.OnTimer(now + T)
		}
		if rp.Target() != before+200*Mbps {
			t.Errorf("hyper increase %d raised the target by %v", n, rp.Target()-before)
		}
	}
}

func TestByteCounterAloneRecoversByWhatWasSent(t *testing.T) {
	rp := flow(t, "paper", 40*Gbps, func(p *Params) { p.RPGTimeReset = 0 })
	rp.OnCNP(0)
	if _, ok := rp.NextTimer(); ok {
		t.Error("without a timer a time is due")
	}
	rp.OnTimer(1 << 60)
	near(t, "time alone", rp.Rate(), 20e9, 0)
	for range 9999 {
		rp.OnSent(1<<60, 1000)
	}
	near(t, "one packet short", rp.Rate(), 20e9, 0)
	rp.OnSent(1<<60, 1500)
	near(t, "one event", rp.Rate(), 30e9, 1)
	rp.OnSent(1<<60, 10*MB-501)
	near(t, "a byte short of the second", rp.Rate(), 30e9, 1)
	rp.OnSent(1<<60, 1)
	near(t, "what was left over counts", rp.Rate(), 35e9, 2)
	rp.OnSent(1<<60, 30*MB)
	near(t, "three at once", rp.Rate(), 40e9-5e9/8, 5)
	rp.OnSent(1<<60, 10*MB-1) // what was counted before a decrease is forgotten
	rp.OnCNP(1 << 60)
	rp.OnSent(1<<60, 10*MB-1)
	if timer, bytes := rp.Stages(); timer != 0 || bytes != 0 {
		t.Errorf("after a CNP the stages are %d and %d", timer, bytes)
	}
}

func TestADecreaseStartsTheTimerAnew(t *testing.T) {
	rp := flow(t, "paper", 40*Gbps, nil)
	rp.OnCNP(0)
	rp.OnCNP(54 * us)
	if at, ok := rp.NextTimer(); !ok || at != 109*us {
		t.Errorf("the next increase is due at %v, %v", at, ok)
	}
	rp.OnTimer(108 * us)
	near(t, "before", rp.Rate(), 10e9, 0)
	rp.OnTimer(109 * us)
	near(t, "at", rp.Rate(), 15e9, 1)
}

func TestTheRateNeverFallsBelowItsLeast(t *testing.T) {
	rp := flow(t, "hpcc", 100*Gbps, nil)
	for k := range loop.Time(100) {
		rp.OnCNP(k * 5 * us)
	}
	if rp.Rate() != 100*Mbps {
		t.Errorf("a hundred CNPs leave %v", rp.Rate())
	}
}

func TestOneDecreaseLeavesItsShare(t *testing.T) {
	for fac, want := range map[uint32]float64{0: 20e9, 50: 20e9, 70: 28e9, 100: 40e9} {
		rp := flow(t, "paper", 40*Gbps, func(p *Params) { p.RPGMinDecFac = fac })
		rp.OnCNP(0)
		near(t, fmt.Sprintf("rpg_min_dec_fac %d", fac), rp.Rate(), want, 1)
	}
	rp := flow(t, "paper", 40*Gbps, func(p *Params) { p.RPGGD, p.InitialAlphaValue, p.RPGMinDecFac = 10, 256, 0 })
	rp.OnCNP(0)
	near(t, "rpg_gd 10 at α = 1/4", rp.Rate(), 30e9, 1)
}

func TestTheFirstCNPSetsItsRateOnce(t *testing.T) {
	rp := flow(t, "paper", 40*Gbps, func(p *Params) { p.RateToSetOnFirstCNP = 8 * Gbps })
	rp.OnCNP(0)
	if rp.Rate() != 8*Gbps || rp.Target() != 8*Gbps || !rp.Limited() {
		t.Errorf("the first CNP set %v, target %v", rp.Rate(), rp.Target())
	}
	rp.OnCNP(50 * us)
	near(t, "the second halves", rp.Rate(), 4e9, 1)
	rp.OnTimer(1 << 50)
	if rp.Limited() {
		t.Fatalf("after %v it is still at %v", loop.Time(1<<50), rp.Rate())
	}
	rp.OnCNP(1 << 50)
	if rp.Rate() <= 8*Gbps {
		t.Errorf("a CNP after recovery set %v as if it were the first", rp.Rate())
	}
}

func TestDecreasesKeepTheMonitorPeriodApart(t *testing.T) {
	rp := flow(t, "hpcc", 100*Gbps, func(p *Params) { p.DCETCPG = 0 }) // α is 1 or 0: as CNPs came or not
	rp.OnCNP(0)
	near(t, "the first at once", rp.Rate(), 50e9, 1)
	for now := us; now < 4*us; now += us / 4 {
		rp.OnCNP(now)
	}
	near(t, "within the period", rp.Rate(), 50e9, 1)
	if at, ok := rp.NextTimer(); !ok || at != 4*us {
		t.Fatalf("due at %v, %v", at, ok)
	}
	rp.OnTimer(4 * us)
	near(t, "all of the period together", rp.Rate(), 25e9, 2)
	if at, _ := rp.NextTimer(); at != 904*us {
		t.Errorf("then the timer is due at %v", at)
	}
	rp.OnTimer(10 * us)
	rp.OnCNP(10 * us) // α is 0 again
	near(t, "after the period, at once", rp.Rate(), 25e9, 2)
	rp.OnCNP(11 * us)
	rp.OnTimer(14 * us)
	if c := rp.r.Counters; c.CNPHandled != 15 || c.CNPIgnored != 0 {
		t.Errorf("counted %+v", c)
	}
}

// When the monitor period ends as the timer is due, the decrease comes first and starts the
// timer anew.
func TestADecreaseComesBeforeAnIncreaseOfTheSameTime(t *testing.T) {
	rp := flow(t, "paper", 40*Gbps, func(p *Params) { p.RateReduceMonitorPeriod = p.RPGTimeReset })
	rp.OnCNP(0)
	rp.OnCNP(10 * us)
	rp.OnTimer(55 * us)
	near(t, "halved twice", rp.Rate(), 10e9, 1)
	if at, _ := rp.NextTimer(); at != 110*us {
		t.Errorf("the timer is due at %v", at)
	}
}

func TestClampsSayWhenTheTargetFalls(t *testing.T) {
	const T = 55 * us
	for _, c := range []struct {
		clamp, afterTime  bool
		timed, bytes, row Rate // the target after a decrease that follows an increase by time, by bytes, a decrease
	}{
		{true, false, 30 * Gbps, 30 * Gbps, 20 * Gbps},
		{true, true, 30 * Gbps, 30 * Gbps, 20 * Gbps},
		{false, true, 30 * Gbps, 30 * Gbps, 40 * Gbps},
		{false, false, 40 * Gbps, 30 * Gbps, 40 * Gbps},
	} {
		for i, want := range []Rate{c.timed, c.bytes, c.row} {
			rp := flow(t, "paper", 40*Gbps, func(p *Params) { p.ClampTgtRate, p.ClampTgtRateAfterTimeInc = c.clamp, c.afterTime })
			rp.OnCNP(0) // 20 Gb/s, target 40
			switch i {
			case 0:
				rp.OnTimer(T)
			case 1:
				rp.OnSent(T-1, 10*MB)
			}
			rp.OnCNP(T - 1 + loop.Time(1-min(i, 1)))
			if rp.Target() != want {
				t.Errorf("clamp %v, after time %v, case %d: target %v, want %v", c.clamp, c.afterTime, i, rp.Target(), want)
			}
		}
	}
}

func TestAFlowAtLineRateHasNothingToDo(t *testing.T) {
	rp := flow(t, "paper", 40*Gbps, nil)
	idle := func() {
		t.Helper()
		if _, ok := rp.NextTimer(); ok || rp.Limited() || rp.Rate() != 40*Gbps {
			t.Errorf("%v, limited %v", rp.Rate(), rp.Limited())
		}
	}
	idle()
	before := *rp
	rp.OnSent(0, 100*MB)
	rp.OnTimer(us)
	if *rp != before {
		t.Error("sending at line rate changed the machine")
	}
	rp.OnCNP(us)
	for n := 0; rp.Limited(); n++ {
		at, ok := rp.NextTimer()
		if !ok || n > 2000 {
			t.Fatalf("after %d increases it is at %v, due %v", n, rp.Rate(), ok)
		}
		rp.OnTimer(at)
	}
	idle()
}

func TestIgnoredCNPsAreCounted(t *testing.T) {
	rp := flow(t, "paper", 40*Gbps, nil)
	rp.r.Ignore()
	if rp.r.Counters != (RPCounters{CNPIgnored: 1}) || rp.Rate() != 40*Gbps {
		t.Errorf("%+v at %v", rp.r.Counters, rp.Rate())
	}
	if rp.r.Line() != 40*Gbps || rp.r.Params() != named(t, "paper").Params {
		t.Error("the flow's parameters are not what they were made with")
	}
}
