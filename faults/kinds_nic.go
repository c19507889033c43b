package faults

import (
	"net/netip"
	"slices"

	"github.com/rocebed/rocebed/topo/strict"
)

// The fault kinds in NICs.
const (
	PFCStorm      Kind = "pfc-storm"
	SlowDMA       Kind = "slow-dma"
	PCIeDowngrade Kind = "pcie-downgrade"
	MTTThrash     Kind = "mtt-thrash"
	NICReset      Kind = "nic-reset"
	QPKill        Kind = "qp-kill"
	RNR           Kind = "rnr"
	AckDelay      Kind = "ack-delay"
	AckCoalesce   Kind = "ack-coalesce"
	CNPOff        Kind = "cnp-off"
	CNPCap        Kind = "cnp-cap"
	DCQCNParams   Kind = "dcqcn-params"
	WrongGID      Kind = "wrong-gid"
)

const (
	hitsArrived = "a packet that the NIC received meanwhile"
	hitsQP      = "a queue pair"
)

var nicKinds = []Def{{
	Kind: PFCStorm, Group: GroupNIC, Target: TargetNIC, Keys: keys(say(opt("priorities"), "default 3"), say(opt("duty"), "the share of the time that the peer is paused; default 100%"),
		say(opt("frequency"), "pause frames a second; default as many as it takes"), opt("quanta")),
	Doc: "the NIC pauses its peer for ever", Hits: "a pause frame",
	Source:  "incident 3: a NIC whose receiver is stuck stalls hosts across the fabric (Guo et al., SIGCOMM 2016); SONiC's test plan, step 5: paused for 90 % of the time",
	Example: "{name: x, kind: pfc-storm, at: ['h1:eth0'], priorities: [3], duty: 90%, quanta: 4000}",
	Variants: []string{
		"{name: x, kind: pfc-storm, at: ['h1:eth0']}",
		"{name: x, kind: pfc-storm, at: ['h1:eth0'], frequency: 10/ms, quanta: 1000}",
	},
}, {
	Kind: SlowDMA, Group: GroupNIC, Target: TargetNIC, Keys: say(req("rate"), "what the NIC still writes to memory"),
	Doc: "the NIC writes what arrives to memory slower than the wire brings it", Hits: hitsArrived,
	Source:  "incident 4: the slow receiver",
	Example: "{name: x, kind: slow-dma, at: ['h2:eth0'], rate: 20Gbps}",
}, {
	Kind: PCIeDowngrade, Group: GroupNIC, Target: TargetNIC, Keys: req("pcie"),
	Doc: "the NIC's PCIe link trains to another generation or width", Hits: hitsArrived,
	Source:  "incident 4: PCIe slower than the wire",
	Example: "{name: x, kind: pcie-downgrade, at: ['h2:eth0'], pcie: gen3 x4}",
	check: func(v *validator) {
		if l := v.spec.PCIe; l.Gen != 0 || l.Width != 0 { // required says so
			if err := l.Check(); err != nil {
				v.wrong("pcie", "%w", err)
			}
		}
	},
}, {
	Kind: MTTThrash, Group: GroupNIC, Target: TargetNIC, Keys: keys(req("entries"), say(opt("delay"), "what a miss takes; default the NIC's own")),
	Doc: "the NIC's translation cache holds `entries` pages alone, so that nearly every write misses", Hits: "a translation that missed",
	Source:  "incident 4: translation cache misses (Guo et al., SIGCOMM 2016: 2,048 entries of 4 KB)",
	Example: "{name: x, kind: mtt-thrash, at: ['h2:eth0'], entries: 1, delay: 2us}",
	Variants: []string{
		"{name: x, kind: mtt-thrash, at: ['h2:eth0'], entries: 4}",
	},
}, {
	Kind: NICReset, Group: GroupNIC, Target: TargetNIC, Keys: say(opt("down"), "how long its port is down; default not at all"),
	Doc: "the NIC loses all its queue pairs' state: they go to the error state", Hits: hitsQP,
	Example: "{name: x, kind: nic-reset, at: ['h1:eth0'], down: 1ms}",
	Variants: []string{
		"{name: x, kind: nic-reset, at: ['h1:eth0']}",
	},
}, {
	Kind: QPKill, Group: GroupNIC, Target: TargetNIC, Keys: opt("workload", "flows"),
	Doc: "queue pairs of the NIC go to the error state", Hits: hitsQP,
	Example: "{name: x, kind: qp-kill, at: ['h1:eth0'], workload: w, flows: 0}",
}, {
	Kind: RNR, Group: GroupNIC, Target: TargetNIC, Keys: opt("workload", "flows"),
	Doc: "no receives are posted at the NIC, and SENDs to it are answered by RNR NAKs", Hits: "a receive that was not posted when it was due",
	Example: "{name: x, kind: rnr, at: ['h2:eth0'], schedule: {at: 1ms, for: 500us}}",
}, {
	Kind: AckDelay, Group: GroupNIC, Target: TargetNIC, Keys: req("delay"),
	Doc: "every ACK and NAK leaves so much later", Hits: "an ACK or a NAK",
	Example: "{name: x, kind: ack-delay, at: ['h2:eth0'], delay: 50us}",
}, {
	Kind: AckCoalesce, Group: GroupNIC, Target: TargetNIC, Keys: keys(req("ack_every"), say(req("delay"), "how long an ACK waits for more, at most")),
	Doc: "one ACK answers too many packets", Hits: "an ACK that was left out",
	Example: "{name: x, kind: ack-coalesce, at: ['h2:eth0'], ack_every: 64, delay: 100us}",
}, {
	Kind: CNPOff, Group: GroupNIC, Target: TargetNIC,
	Doc: "the NIC answers no mark with a CNP", Hits: "a CNP that was not sent",
	Source:  "incident 14; incident 15: a counter of CNPs that lies",
	Example: "{name: x, kind: cnp-off, at: ['h2:eth0']}",
}, {
	Kind: CNPCap, Group: GroupNIC, Target: TargetNIC, Keys: say(req("frequency"), "CNPs that it still sends, all flows together"),
	Doc: "the NIC sends few CNPs, however many flows are marked", Hits: "a CNP that was not sent",
	Source:  "incident 14",
	Example: "{name: x, kind: cnp-cap, at: ['h2:eth0'], frequency: 10/ms}",
}, {
	Kind: DCQCNParams, Group: GroupNIC, Target: TargetNIC, Keys: req("dcqcn"),
	Doc: "the NIC's DCQCN has other parameters than its neighbours'", Hits: "a change of a flow's rate that was computed by them, and where a knob of CNPs is among them a CNP that was sent",
	Source:  "incident 11: generations of NICs share a bottleneck unfairly",
	Example: "{name: x, kind: dcqcn-params, at: ['h1:eth0'], dcqcn: {rpg_ai_rate: 100Mbps}}",
	check:   (*validator).dcqcn,
}, {
	Kind: WrongGID, Group: GroupNIC, Target: TargetNIC, Keys: opt("addr"),
	Doc: "the NIC's queue pairs send from an address that nobody answers, while ping works", Hits: "a packet that was sent from it",
	Source:  "incident 17: wrong GID, or no route on a rail: retry exceeded (12) at once",
	Example: "{name: x, kind: wrong-gid, at: ['h1:eth0']}",
	Variants: []string{
		"{name: x, kind: wrong-gid, at: ['h1:eth0'], addr: 10.99.0.1}",
	},
	check: func(v *validator) {
		if a := v.spec.Addr; a != "" {
			if _, err := netip.ParseAddr(a); err != nil {
				v.wrong("addr", "%q is not an IP address", a)
			}
		}
	},
}}

// knobs are DCQCN's parameters, as a scenario's nics.dcqcn has them.
var knobs = []string{"profile", "rpg_time_reset", "rpg_byte_reset", "rpg_threshold", "rpg_ai_rate", "rpg_hai_rate", "rpg_gd", "rpg_min_dec_fac", "rpg_min_rate",
	"rate_to_set_on_first_cnp", "dce_tcp_g", "dce_tcp_rtt", "rate_reduce_monitor_period", "initial_alpha_value", "clamp_tgt_rate", "clamp_tgt_rate_after_time_inc",
	"alpha_update", "min_time_between_cnps", "cnp_dscp", "cnp_802p_prio"}

func (v *validator) dcqcn() {
	names := make([]string, 0, len(v.spec.DCQCN))
	for k := range v.spec.DCQCN {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		if !slices.Contains(knobs, k) {
			v.wrong("dcqcn."+k, "%q is no parameter of DCQCN%s", k, strict.DidYouMean(k, knobs))
		}
	}
}
