package dcqcn

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Profile is a published set of parameters. What its source doesn't state is inherited from
// the profile named Base, knob by knob.
type Profile struct {
	Name    string
	Base    string   // "" for the one that states everything but the marking
	Source  string   // who published it
	Unsure  string   // what of it is uncertain, or chosen by us; "" for nothing
	States  []string // the knobs that the source states, by their names in files; "marking" is the curve
	Params  Params
	Marking Marking
}

type definition struct {
	Profile
	set func(*Params)
}

// definitions stand after their bases.
var definitions = []definition{
	{Profile{Name: "mlx5",
		Source: "NVIDIA, DCQCN CC Parameters (DOCA 3.4 and MLNX_OFED); mlxconfig and cc_params of ConnectX-4 and later",
		Unsure: "The unit of rpg_byte_reset is not given: bytes, as the knob of that name has in Linux's QCN (dcbnl.h). min_time_between_cnps is reported as 0, 2 and 4 µs: 4. alpha_update is our name for NVIDIA's description. A NIC has no marking curve: that of hpcc stands in.",
		States: []string{"rpg_time_reset", "rpg_byte_reset", "rpg_threshold", "rpg_ai_rate", "rpg_hai_rate", "rpg_gd", "rpg_min_dec_fac",
			"rpg_min_rate", "rate_to_set_on_first_cnp", "dce_tcp_g", "dce_tcp_rtt", "rate_reduce_monitor_period", "initial_alpha_value",
			"clamp_tgt_rate", "clamp_tgt_rate_after_time_inc", "alpha_update", "min_time_between_cnps", "cnp_dscp", "cnp_802p_prio"},
		// The curve of the profile hpcc, for switches of the same speed.
		Marking: Marking{400 * KB, 1600 * KB, 0.2}},
		func(p *Params) {
			*p = Params{
				RPGTimeReset: 300 * time.Microsecond, RPGByteReset: 32767, RPGThreshold: 1, RPGAIRate: 5 * Mbps, RPGHAIRate: 50 * Mbps,
				RPGGD: 11, RPGMinDecFac: 50, RPGMinRate: Mbps, DCETCPG: 1019, DCETCPRTT: time.Microsecond,
				RateReduceMonitorPeriod: 4 * time.Microsecond, InitialAlphaValue: 1023, ClampTgtRateAfterTimeInc: true,
				AlphaUpdate: AlphaPerPeriod, MinTimeBetweenCNPs: 4 * time.Microsecond, CNPDSCP: 48, CNP802pPrio: 6,
			}
		}},
	{Profile{Name: "paper", Base: "mlx5",
		Source: "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015: the parameters for 40 Gb/s",
		Unsure: "It gives no R_HAI and no least rate.",
		States: []string{"rpg_time_reset", "rpg_byte_reset", "rpg_threshold", "rpg_ai_rate", "rpg_gd", "rate_to_set_on_first_cnp", "dce_tcp_g",
			"dce_tcp_rtt", "rate_reduce_monitor_period", "initial_alpha_value", "clamp_tgt_rate", "alpha_update", "min_time_between_cnps", "marking"},
		Marking: Marking{5 * KB, 200 * KB, 0.01}},
		func(p *Params) {
			p.RPGTimeReset, p.RPGByteReset, p.RPGThreshold, p.RPGAIRate = 55*time.Microsecond, 10*MB, 5, 40*Mbps
			p.RPGGD, p.RateToSetOnFirstCNP, p.RateReduceMonitorPeriod = 11, 0, 0
			p.DCETCPG, p.DCETCPRTT, p.AlphaUpdate, p.InitialAlphaValue = 1020, 55*time.Microsecond, AlphaPerCNP, 1024
			p.ClampTgtRate, p.MinTimeBetweenCNPs = true, 50*time.Microsecond
		}},
	{Profile{Name: "ns3-rdma", Base: "paper",
		Source: "the ns-3 model that the paper's authors published, its mix configuration",
		Unsure: "Taken from secondary text.",
		States: []string{"rpg_time_reset", "rpg_byte_reset", "rpg_threshold", "rpg_ai_rate", "rpg_hai_rate", "dce_tcp_g", "dce_tcp_rtt",
			"min_time_between_cnps", "marking"},
		Marking: Marking{40 * KB, 1000 * KB, 1}},
		func(p *Params) {
			p.RPGTimeReset, p.RPGByteReset, p.RPGThreshold, p.RPGAIRate, p.RPGHAIRate = 60*time.Microsecond, 300*MB, 5, 40*Mbps, 200*Mbps
			p.DCETCPG, p.DCETCPRTT, p.MinTimeBetweenCNPs = 1020, 55*time.Microsecond, 50*time.Microsecond
		}},
	{Profile{Name: "hpcc", Base: "mlx5",
		Source: "the ns-3 model published with Li et al., HPCC, SIGCOMM 2019, its mix configuration for 100 Gb/s (\"Mellanox's version of DCQCN\")",
		Unsure: "There the first CNP decreases the rate only 4 µs later; here at once. Copies of the model differ in R_HAI (50 and 100 Mb/s).",
		States: []string{"rpg_time_reset", "rpg_byte_reset", "rpg_threshold", "rpg_ai_rate", "rpg_hai_rate", "rpg_gd", "rpg_min_rate",
			"rate_to_set_on_first_cnp", "dce_tcp_g", "dce_tcp_rtt", "rate_reduce_monitor_period", "initial_alpha_value", "clamp_tgt_rate",
			"clamp_tgt_rate_after_time_inc", "alpha_update", "min_time_between_cnps", "marking"},
		Marking: Marking{400 * KB, 1600 * KB, 0.2}},
		func(p *Params) {
			p.RPGTimeReset, p.RPGByteReset, p.RPGThreshold, p.RPGAIRate, p.RPGHAIRate = 900*time.Microsecond, 0, 1, 50*Mbps, 100*Mbps
			p.RPGGD, p.RPGMinRate, p.RateToSetOnFirstCNP = 11, 100*Mbps, 0
			p.DCETCPG, p.DCETCPRTT, p.AlphaUpdate, p.InitialAlphaValue = 1020, time.Microsecond, AlphaPerPeriod, 1024
			p.ClampTgtRate, p.ClampTgtRateAfterTimeInc, p.RateReduceMonitorPeriod = false, true, 4*time.Microsecond
			p.MinTimeBetweenCNPs = 0
		}},
	{Profile{Name: "irdma", Base: "paper",
		Source:  "module parameters of Intel's irdma driver (E810, out of tree)",
		Unsure:  "It increases a window by 1 and 5 segments, which is no rate: rpg_ai_rate and rpg_hai_rate are inherited. Its least rate is 0, which can't recover: inherited.",
		States:  []string{"rpg_time_reset", "rpg_byte_reset", "rpg_threshold", "rpg_min_dec_fac", "rate_reduce_monitor_period", "min_time_between_cnps"},
		Marking: Marking{5 * KB, 200 * KB, 0.01}},
		func(p *Params) {
			p.RPGTimeReset, p.RPGByteReset, p.RPGThreshold, p.RPGMinDecFac = 55*time.Microsecond, 150_000, 5, 1
			p.RateReduceMonitorPeriod, p.MinTimeBetweenCNPs = 50*time.Microsecond, 50*time.Microsecond
		}},
	{Profile{Name: "ionic", Base: "mlx5",
		Source:  "defaults of AMD Pensando's NIC (ionic)",
		Unsure:  "Taken from secondary text.",
		States:  []string{"rpg_byte_reset", "rpg_threshold", "rpg_ai_rate", "rpg_hai_rate", "dce_tcp_g"},
		Marking: Marking{400 * KB, 1600 * KB, 0.2}},
		func(p *Params) {
			p.RPGByteReset, p.RPGThreshold, p.RPGAIRate, p.RPGHAIRate, p.DCETCPG = 431_068, 1, 160*Mbps, 300*Mbps, 1022
		}},
}

var profiles = derive()

func derive() []Profile {
	var out []Profile
	for _, d := range definitions {
		p := d.Profile
		for _, base := range out {
			if base.Name == p.Base {
				p.Params = base.Params
			}
		}
		d.set(&p.Params)
		out = append(out, p)
	}
	return out
}

// Profiles are all profiles, those that others inherit from first.
func Profiles() []Profile {
	out := slices.Clone(profiles)
	for i := range out {
		out[i].States = slices.Clone(out[i].States)
	}
	return out
}

// ProfileNamed finds a profile. Its error names those that there are.
func ProfileNamed(name string) (Profile, error) {
	var names []string
	for _, p := range Profiles() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Profile{}, fmt.Errorf("there is no DCQCN profile %q, only %s", name, strings.Join(names, ", "))
}
