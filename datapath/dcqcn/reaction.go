package dcqcn

import (
	"fmt"
	"math/bits"

	"github.com/rocebed/rocebed/datapath/loop"
)

// RPCounters count what reaction points did, under mlx5's names.
type RPCounters struct {
	CNPHandled uint64 // rp_cnp_handled: CNPs that a flow's reaction point took
	CNPIgnored uint64 // rp_cnp_ignored: CNPs for nobody, or where DCQCN is off; see Reaction.Ignore
	Changes    uint64 // decreases and increases of flows' rates
}

// Reaction is what the flows of one port of a NIC share: parameters, line rate, counters.
type Reaction struct {
	Counters RPCounters

	params Params
	line   Rate
	weight uint64     // what α keeps, of alphaOne
	decay  [40]uint64 // weight to the power of 2^i
}

// alphaOne is α = 1 in fixed point. It leaves room for neither sign nor overflow: α is never
// more than 1.
const alphaOne = uint64(1) << 62

// mul multiplies two fixed-point numbers.
func mul(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi<<2 | lo>>62
}

// NewReaction checks the parameters against each other and against the line rate. Its error is
// one or more ParamErrors, joined.
func NewReaction(p Params, line Rate) (*Reaction, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	switch {
	case line > 1<<50:
		return nil, &ParamError{"line rate", line, "more than a petabit per second is no rate of a port"}
	case p.RPGMinRate > line:
		return nil, &ParamError{"rpg_min_rate", p.RPGMinRate, fmt.Sprintf("it must not exceed the line rate %v", line)}
	case p.RateToSetOnFirstCNP > line:
		return nil, &ParamError{"rate_to_set_on_first_cnp", p.RateToSetOnFirstCNP, fmt.Sprintf("it must not exceed the line rate %v", line)}
	case p.RateToSetOnFirstCNP != 0 && p.RateToSetOnFirstCNP < p.RPGMinRate:
		return nil, &ParamError{"rate_to_set_on_first_cnp", p.RateToSetOnFirstCNP, fmt.Sprintf("it must not be less than rpg_min_rate %v", p.RPGMinRate)}
	}
	r := &Reaction{params: p, line: line, weight: uint64(p.DCETCPG) << 52}
	r.decay[0] = r.weight
	for i := 1; i < len(r.decay); i++ {
		r.decay[i] = mul(r.decay[i-1], r.decay[i-1])
	}
	return r, nil
}

// Params are the parameters.
func (r *Reaction) Params() Params { return r.params }

// Line is the line rate.
func (r *Reaction) Line() Rate { return r.line }

// Flow makes the reaction point of a new flow: at line rate, no CNP seen. It is meant to be
// a field of what owns it.
func (r *Reaction) Flow() RP { return RP{r: r, rate: r.line, target: r.line} }

// Adopt makes a flow of another reaction one of this one's. What is due under the other up to now is done, and the flow keeps its rate; from
// now on it changes by these parameters.
func (r *Reaction) Adopt(rp *RP, now loop.Time) {
	rp.OnTimer(now)
	if n := rp.r.periods(rp.alphaAt, now); n > 0 {
		rp.alpha, rp.alphaAt, rp.marked = rp.alphaThen(now), now, false
	}
	rp.r = r
	rp.increaseAt = now.Add(r.params.RPGTimeReset)
}

// Ignore counts a CNP that no reaction point took: for a queue pair that isn't there, or
// where DCQCN is off.
func (r *Reaction) Ignore() { r.Counters.CNPIgnored++ }

// raised is α after a CNP: (1−g)α + g.
func (r *Reaction) raised(alpha uint64) uint64 { return mul(alpha, r.weight) + alphaOne - r.weight }

// decayed is α after n periods without a CNP: (1−g)^n α, in at most 40 multiplications.
func (r *Reaction) decayed(alpha uint64, n int64) uint64 {
	for i := 0; n != 0 && alpha != 0; i++ {
		if i == len(r.decay) {
			return 0
		}
		if n&1 != 0 {
			alpha = mul(alpha, r.decay[i])
		}
		n >>= 1
	}
	return alpha
}

// periods is how many whole periods of α fit between two times.
func (r *Reaction) periods(from, to loop.Time) int64 {
	return int64(to-from) / int64(r.params.DCETCPRTT)
}
