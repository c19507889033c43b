package dcqcn

import (
	"math/bits"

	"github.com/rocebed/rocebed/datapath/loop"
)

// RP is the reaction point of one flow. Reaction.Flow makes one.
//
// The owner tells it of CNPs and of what was sent, and paces the flow at Rate. Increases of
// the rate are due at NextTimer; OnTimer, OnCNP and OnSent do all that became due up to the
// time they are given. So there are two ways to own one: arm a timer for NextTimer while the
// flow has something to send; or none at all, calling OnTimer before each look at Rate. Both
// see the same rates. Catching up after a long idle time costs some nanoseconds for each
// increase missed, and ends when the flow is back at line rate.
//
// At line rate there is nothing to do: NextTimer says so, and OnSent returns at once. α needs
// no timer ever; it is worked out when a CNP comes.
//
// Nothing here allocates.
type RP struct {
	r            *Reaction
	rate, target Rate
	alpha        uint64    // as of alphaAt
	alphaAt      loop.Time // start of the period of α that alpha belongs to
	cutAt        loop.Time // the last decrease
	increaseAt   loop.Time // the timer's next increase, while limited
	sent         Bytes     // since the last decrease or the byte counter's last increase
	timeStage    uint32    // increases by the timer since the last decrease
	byteStage    uint32    // increases by the byte counter since the last decrease
	seen         bool      // a CNP has come
	limited      bool      // the rate is below line rate
	cutDue       bool      // a CNP waits for the monitor period to end
	marked       bool      // a CNP came in the period of α that began at alphaAt
}

// Rate is R_C, what the flow may send at, as of the last event.
func (rp *RP) Rate() Rate { return rp.rate }

// Target is R_T, what the rate recovers towards, as of the last event.
func (rp *RP) Target() Rate { return rp.target }

// Limited says whether the flow is held below line rate, as of the last event.
func (rp *RP) Limited() bool { return rp.limited }

// Stages are how many increases the timer and the byte counter have made since the last
// decrease, while the flow is limited.
func (rp *RP) Stages() (timer, bytes uint32) { return rp.timeStage, rp.byteStage }

// Alpha is α at a time that is not before the last event, between 0 and 1; 0 before the
// first CNP.
func (rp *RP) Alpha(now loop.Time) float64 { return float64(rp.alphaThen(now)) / float64(alphaOne) }

// NextTimer is when the rate changes next if no CNP comes and nothing is sent. It is false
// for a flow that no time changes.
func (rp *RP) NextTimer() (at loop.Time, ok bool) {
	timer := rp.limited && rp.r.params.RPGTimeReset != 0
	switch {
	case rp.cutDue && timer:
		return min(rp.cutAllowed(), rp.increaseAt), true
	case rp.cutDue:
		return rp.cutAllowed(), true
	}
	return rp.increaseAt, timer
}

// OnTimer does what became due up to now, now included. It may be called at any time.
func (rp *RP) OnTimer(now loop.Time) {
	for {
		at, ok := rp.NextTimer()
		if !ok || at > now {
			return
		}
		// A decrease goes before an increase of the same time: it starts the timer anew.
		if rp.cutDue && rp.cutAllowed() == at {
			rp.decrease(at)
			continue
		}
		rp.increaseAt = at.Add(rp.r.params.RPGTimeReset)
		rp.increase(&rp.timeStage)
	}
}

// OnSent counts what the flow put on the wire; only the byte counter needs it.
func (rp *RP) OnSent(now loop.Time, n Bytes) {
	if !rp.limited && !rp.cutDue {
		return
	}
	rp.OnTimer(now)
	b := rp.r.params.RPGByteReset
	if b == 0 || !rp.limited {
		return
	}
	for rp.sent += n; rp.sent >= b && rp.limited; {
		rp.sent -= b
		rp.increase(&rp.byteStage)
	}
}

// OnCNP takes a congestion notification for this flow. What is due up to now comes first.
func (rp *RP) OnCNP(now loop.Time) {
	r := rp.r
	r.Counters.CNPHandled++
	rp.OnTimer(now)
	if !rp.seen {
		rp.first(now)
		return
	}
	alpha := rp.alphaThen(now)
	if r.params.AlphaUpdate == AlphaPerPeriod {
		if n := r.periods(rp.alphaAt, now); n > 0 {
			rp.alpha, rp.alphaAt = alpha, rp.alphaAt.Add(loop.Duration(n)*r.params.DCETCPRTT)
		}
		rp.marked = true
	}
	if now >= rp.cutAllowed() {
		rp.decrease(now)
	} else {
		rp.cutDue = true
	}
	if r.params.AlphaUpdate == AlphaPerCNP {
		rp.alpha, rp.alphaAt = r.raised(alpha), now
	}
}

// first is the flow's first CNP. α starts here; in the per-period rule this CNP made α what
// it is and does not raise it once more.
func (rp *RP) first(now loop.Time) {
	r := rp.r
	rp.seen = true
	if r.params.RateToSetOnFirstCNP != 0 {
		r.Counters.Changes++
	}
	rp.alpha, rp.alphaAt = uint64(r.params.InitialAlphaValue)<<52, now
	if set := r.params.RateToSetOnFirstCNP; set != 0 {
		rp.rate, rp.target = set, set
		rp.restart(now)
	} else {
		rp.decrease(now)
	}
	if r.params.AlphaUpdate == AlphaPerCNP {
		rp.alpha = r.raised(rp.alpha)
	}
}

// decrease cuts the rate by α at that time: R_C ← R_C(1 − α·2^10/2^rpg_gd), bounded below.
func (rp *RP) decrease(at loop.Time) {
	p := &rp.r.params
	rp.r.Counters.Changes++
	if p.ClampTgtRate || rp.byteStage > 0 || p.ClampTgtRateAfterTimeInc && rp.timeStage > 0 {
		rp.target = rp.rate
	}
	cut := mulRate(rp.rate, rp.alphaThen(at)) >> (p.RPGGD - 10)
	least := (rp.rate*Rate(p.RPGMinDecFac) + 99) / 100
	rp.rate = max(rp.rate-cut, least, p.RPGMinRate)
	rp.restart(at)
}

// mulRate is rate · α rounded down.
func mulRate(rate Rate, alpha uint64) Rate {
	hi, lo := bits.Mul64(uint64(rate), alpha)
	return Rate(hi<<2 | lo>>62)
}

// restart starts the timer, the byte counter and their stages anew, and the monitor period.
func (rp *RP) restart(at loop.Time) {
	rp.timeStage, rp.byteStage, rp.sent = 0, 0, 0
	rp.cutAt, rp.cutDue = at, false
	rp.increaseAt = at.Add(rp.r.params.RPGTimeReset)
	rp.limited = rp.rate < rp.r.line
}

// increase is one event of the timer or of the byte counter, whose stage it counts. The first
// F events of a counter are fast recovery, unless the other has had its F already; then come
// additive increases, and hyper increases once each counter has had more than F.
func (rp *RP) increase(stage *uint32) {
	p := &rp.r.params
	rp.r.Counters.Changes++
	most, least := max(rp.timeStage, rp.byteStage), min(rp.timeStage, rp.byteStage)
	if p.RPGTimeReset == 0 || p.RPGByteReset == 0 {
		least = most // a counter that is off holds nobody back
	}
	switch {
	case most < p.RPGThreshold:
	case least > p.RPGThreshold:
		rp.target = min(rp.target+p.RPGHAIRate, rp.r.line)
	default:
		rp.target = min(rp.target+p.RPGAIRate, rp.r.line)
	}
	rp.rate = (rp.rate + rp.target + 1) / 2
	*stage++
	rp.limited = rp.rate < rp.r.line
}

// cutAllowed is from when on the rate may decrease again.
func (rp *RP) cutAllowed() loop.Time { return rp.cutAt.Add(rp.r.params.RateReduceMonitorPeriod) }

// alphaThen is α at a time, which is not before alphaAt.
func (rp *RP) alphaThen(at loop.Time) uint64 {
	n := rp.r.periods(rp.alphaAt, at)
	if n == 0 {
		return rp.alpha
	}
	if rp.marked {
		return rp.r.decayed(rp.r.raised(rp.alpha), n-1)
	}
	return rp.r.decayed(rp.alpha, n)
}
