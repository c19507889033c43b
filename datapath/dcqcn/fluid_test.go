package dcqcn

import "math"

// fluid is the model of Zhu et al. (SIGCOMM 2015, section 5) for N equal flows on one line, in
// packets and seconds. With the marking probability p held still, the mean-field equations are
//
//	dα/dt   = g/K · (P_K − α)                                    P_x = 1 − (1−p)^(x·R_C)
//	dR_T/dt = −(R_T − R_C)/τ · P_τ + R_AI·R_C·(a_B + a_T)
//	dR_C/dt = −R_C·α/(2τ) · P_τ + (R_T − R_C)/2 · R_C·(b_B + b_T)
//
// where b_n = p / ((1−p)^−n − 1) is how often n packets pass with no mark and a_n = (1−p)^(F·n)·b_n how
// often that follows F such runs; n is B for the byte counter and T·R_C for the timer.
type fluid struct {
	rate, ai        float64 // packets/s of one flow; packets/s
	cnp, alpha, inc float64 // τ, K, T in seconds
	bytes, fast     float64 // B in packets, F
}

func newFluid(p Params, line Rate, packet Bytes, n int) fluid {
	bits := float64(packet) * 8
	return fluid{
		rate: float64(line) / bits / float64(n), ai: float64(p.RPGAIRate) / bits,
		cnp: p.MinTimeBetweenCNPs.Seconds(), alpha: p.DCETCPRTT.Seconds(), inc: p.RPGTimeReset.Seconds(),
		bytes: float64(p.RPGByteReset) / float64(packet), fast: float64(p.RPGThreshold),
	}
}

// drift is dR_C/dt over R_C with R_C = line/N and the other two equations at rest: first
// dα/dt = 0 gives α, then dR_T/dt = 0 gives R_T − R_C. It is positive below the fixed point.
func (f fluid) drift(p float64) float64 {
	none := func(n float64) float64 { return math.Exp(n * math.Log1p(-p)) } // (1−p)^n
	run := func(n float64) float64 { return p / math.Expm1(-n*math.Log1p(-p)) }
	timer := f.inc * f.rate
	cnps := (1 - none(f.cnp*f.rate)) / f.cnp
	alpha := 1 - none(f.alpha*f.rate)
	ahead := f.ai * f.rate * (none(f.fast*f.bytes)*run(f.bytes) + none(f.fast*timer)*run(timer)) / cnps
	return ahead/2*(run(f.bytes)+run(timer)) - alpha/2*cnps
}

// fixedPoint is p*, by bisection of the logarithm; the drift falls as p rises.
func (f fluid) fixedPoint() float64 {
	low, high := math.Log(1e-12), math.Log(0.999)
	for range 200 {
		mid := (low + high) / 2
		if f.drift(math.Exp(mid)) > 0 {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp(low)
}

// queueAt is the queue at which the curve marks with probability p ≤ Pmax.
func queueAt(m Marking, p float64) float64 {
	return float64(m.Kmin) + p/float64(m.Pmax)*float64(m.Kmax-m.Kmin)
}
