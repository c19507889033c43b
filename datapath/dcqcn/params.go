package dcqcn

import (
	"errors"
	"fmt"
	"time"
)

// AlphaUpdate says when α moves, which mlx5 has no knob for: it is what the paper and the NIC
// do differently.
type AlphaUpdate string

const (
	// AlphaPerCNP raises α at each CNP and lowers it for each dce_tcp_rtt without one, counted
	// from the last CNP: the paper's rule (Zhu et al., SIGCOMM 2015, section 3.1).
	AlphaPerCNP AlphaUpdate = "cnp"
	// AlphaPerPeriod moves α once every dce_tcp_rtt, up when a CNP came in that period, down
	// when none did: mlx5's rule (NVIDIA, DCQCN CC Parameters).
	AlphaPerPeriod AlphaUpdate = "period"
)

// Params are the knobs of DCQCN in a NIC, under mlx5's names. Numbers without a unit of their
// own (weights, shifts, per cent) are counted as mlx5 counts them; rates and sizes carry units.
type Params struct {
	// RPGTimeReset is T, the time between increases of the rate; 0 turns the timer off.
	RPGTimeReset time.Duration `yaml:"rpg_time_reset"`
	// RPGByteReset is B, what is sent between increases of the rate; 0 turns the byte counter off.
	RPGByteReset Bytes `yaml:"rpg_byte_reset"`
	// RPGThreshold is F, how many increases of one counter are fast recovery.
	RPGThreshold uint32 `yaml:"rpg_threshold"`
	// RPGAIRate is R_AI, what an additive increase adds to the target rate.
	RPGAIRate Rate `yaml:"rpg_ai_rate"`
	// RPGHAIRate is R_HAI, what a hyper increase adds to the target rate.
	RPGHAIRate Rate `yaml:"rpg_hai_rate"`
	// RPGGD scales a decrease: R_C ← R_C(1 − α·2^10/2^rpg_gd). 11 is the paper's α/2, 10 is α.
	RPGGD uint32 `yaml:"rpg_gd"`
	// RPGMinDecFac is the least that one decrease leaves of the rate, in per cent; 0 is no bound,
	// 100 no decrease at all.
	RPGMinDecFac uint32 `yaml:"rpg_min_dec_fac"`
	// RPGMinRate is the least rate of a flow, at least 1 bit/s.
	RPGMinRate Rate `yaml:"rpg_min_rate"`
	// RateToSetOnFirstCNP is what the first CNP of a flow sets its rate and its target to,
	// in place of a decrease; 0 lets it decrease like any other.
	RateToSetOnFirstCNP Rate `yaml:"rate_to_set_on_first_cnp"`
	// DCETCPG is the weight that α keeps when it moves, in 1024ths: 1024(1 − g), 0 to 1023.
	DCETCPG uint32 `yaml:"dce_tcp_g"`
	// DCETCPRTT is K, the period of α; see AlphaUpdate.
	DCETCPRTT time.Duration `yaml:"dce_tcp_rtt"`
	// RateReduceMonitorPeriod is the least time between two decreases. A CNP that comes earlier
	// decreases the rate when the period is over, together with all others of that period.
	RateReduceMonitorPeriod time.Duration `yaml:"rate_reduce_monitor_period"`
	// InitialAlphaValue is α when the first CNP of a flow comes, in 1024ths, 1 to 1024 (mlx5
	// takes 1023 at most).
	InitialAlphaValue uint32 `yaml:"initial_alpha_value"`
	// ClampTgtRate lowers the target to the current rate at every decrease: the paper's rule.
	// Without it only a decrease that follows an increase does, so that CNPs in a row leave the
	// target where it was before the first of them.
	ClampTgtRate bool `yaml:"clamp_tgt_rate"`
	// ClampTgtRateAfterTimeInc counts the timer's increases too for that rule, not only the
	// byte counter's.
	ClampTgtRateAfterTimeInc bool `yaml:"clamp_tgt_rate_after_time_inc"`
	// AlphaUpdate is when α moves.
	AlphaUpdate AlphaUpdate `yaml:"alpha_update"`
	// MinTimeBetweenCNPs is N, the least time between two CNPs for one flow; 0 sends one for
	// every marked packet.
	MinTimeBetweenCNPs time.Duration `yaml:"min_time_between_cnps"`
	// CNPDSCP is the DSCP of CNPs, 0 to 63.
	CNPDSCP uint8 `yaml:"cnp_dscp"`
	// CNP802pPrio is the priority of CNPs, 0 to 7.
	CNP802pPrio uint8 `yaml:"cnp_802p_prio"`
}

// ParamError is a knob whose value can't be.
type ParamError struct {
	Param string // the knob's name in files
	Value any
	Want  string // what would do
}

func (e *ParamError) Error() string { return fmt.Sprintf("%s is %v: %s", e.Param, e.Value, e.Want) }

// Validate checks every knob and returns a ParamError for each that can't be, joined.
func (p *Params) Validate() error {
	var wrong []error
	check := func(ok bool, param string, value any, want string) {
		if !ok {
			wrong = append(wrong, &ParamError{param, value, want})
		}
	}
	check(p.RPGTimeReset >= 0, "rpg_time_reset", p.RPGTimeReset, "give the time between increases, or 0 for no timer")
	check(p.RPGTimeReset != 0 || p.RPGByteReset != 0, "rpg_time_reset", p.RPGTimeReset,
		"with rpg_byte_reset 0 too a flow that slowed down would never recover; give one of them")
	check(p.RPGAIRate >= 1, "rpg_ai_rate", p.RPGAIRate, "give at least 1bps, or a flow would never return to line rate")
	check(p.RPGHAIRate >= 1, "rpg_hai_rate", p.RPGHAIRate, "give at least 1bps, or a flow would never return to line rate")
	check(p.RPGGD >= 10 && p.RPGGD <= 11, "rpg_gd", p.RPGGD, "give 11 (a decrease by α/2) or 10 (by α)")
	check(p.RPGMinDecFac <= 100, "rpg_min_dec_fac", p.RPGMinDecFac, "give per cent, 0 to 100")
	check(p.RPGMinRate >= 1, "rpg_min_rate", p.RPGMinRate, "give at least 1bps: a flow at rate zero can't recover")
	check(p.DCETCPG <= 1023, "dce_tcp_g", p.DCETCPG, "give the weight that α keeps in 1024ths, 0 to 1023 (1020 is g = 1/256)")
	check(p.DCETCPRTT > 0, "dce_tcp_rtt", p.DCETCPRTT, "give the period of α, more than 0")
	check(p.RateReduceMonitorPeriod >= 0, "rate_reduce_monitor_period", p.RateReduceMonitorPeriod, "give the least time between decreases, or 0")
	check(p.InitialAlphaValue >= 1 && p.InitialAlphaValue <= 1024, "initial_alpha_value", p.InitialAlphaValue, "give 1024ths, 1 to 1024")
	check(p.AlphaUpdate == AlphaPerCNP || p.AlphaUpdate == AlphaPerPeriod, "alpha_update", fmt.Sprintf("%q", p.AlphaUpdate),
		fmt.Sprintf("give %q (at each CNP, as in the paper) or %q (each dce_tcp_rtt, as in mlx5)", AlphaPerCNP, AlphaPerPeriod))
	check(p.MinTimeBetweenCNPs >= 0, "min_time_between_cnps", p.MinTimeBetweenCNPs, "give the least time between CNPs of a flow, or 0")
	check(p.CNPDSCP <= 63, "cnp_dscp", p.CNPDSCP, "give a DSCP, 0 to 63")
	check(p.CNP802pPrio <= 7, "cnp_802p_prio", p.CNP802pPrio, "give a priority, 0 to 7")
	return errors.Join(wrong...)
}

// WithMinRate returns the parameters with a least rate of at least floor, and whether that
// raised it. Where packets are paced in wall time, floor is what keeps a flow alive: ten
// packets of its size a second of wall time, times the dilation.
func (p Params) WithMinRate(floor Rate) (_ Params, raised bool) {
	raised = floor > p.RPGMinRate
	p.RPGMinRate = max(p.RPGMinRate, floor)
	if p.RateToSetOnFirstCNP != 0 {
		p.RateToSetOnFirstCNP = max(p.RateToSetOnFirstCNP, p.RPGMinRate)
	}
	return p, raised
}
