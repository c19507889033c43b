package faults

import (
	"slices"
	"strconv"
	"strings"
)

// The fault kinds in switches.
const (
	ECNOff        Kind = "ecn-off"
	ECNThresholds Kind = "ecn-thresholds"
	DSCPMap       Kind = "dscp-map"
	PFCOff        Kind = "pfc-off"
	PFCThresholds Kind = "pfc-thresholds"
	BufferAlpha   Kind = "buffer-alpha"
	BufferShrink  Kind = "buffer-shrink"
	WatchdogOff   Kind = "watchdog-off"
	HashSeed      Kind = "hash-seed"
	StuckQueue    Kind = "stuck-queue"
	RouteLate     Kind = "route-late"
	Reboot        Kind = "reboot"
	CNPStarved    Kind = "cnp-starved"
)

const (
	hitsMark      = "a packet that is marked, or isn't, for it"
	hitsForwarded = "a packet that went through while the setting was wrong"
	hitsSwitch    = "a switch"
)

var switchKinds = []Def{{
	Kind: ECNOff, Group: GroupSwitch, Target: TargetPort, Keys: opt("priorities"),
	Doc: "the port's egress queues mark nothing", Hits: hitsMark,
	Source:  "incident 18, and SONiC's test plan, step 2: incast without ECN pauses up to the spine",
	Example: "{name: x, kind: ecn-off, at: ['leaf1:eth0']}",
	Variants: []string{
		"{name: x, kind: ecn-off, at: ['leaf1:eth0'], priorities: [3]}",
	},
}, {
	Kind: ECNThresholds, Group: GroupSwitch, Target: TargetPort, Keys: keys(req("kmin", "kmax", "pmax"), opt("priorities")),
	Doc: "the port's egress queues mark by another curve", Hits: hitsMark,
	Source:  "incident 9: marking begins above XOFF, so pauses come before marks",
	Example: "{name: x, kind: ecn-thresholds, at: ['leaf1:*'], kmin: 2MB, kmax: 4MB, pmax: 1%}",
	Variants: []string{
		"{name: x, kind: ecn-thresholds, at: ['leaf1:*'], kmin: 20KB, kmax: 80KB, pmax: 1%, priorities: [3]}",
	},
	check: func(v *validator) {
		if s := v.spec; s.KMin > 0 && s.KMin >= s.KMax {
			v.wrong("kmin", "%v must be below kmax %v", s.KMin, s.KMax)
		}
	},
}, {
	Kind: DSCPMap, Group: GroupSwitch, Target: TargetPort, Keys: req("dscp_map"),
	Doc: "what comes in at the port gets another priority for its DSCP", Hits: hitsForwarded,
	Source:  "incident 6: lossless traffic in a lossy class behind one hop: drops, with PFC on",
	Example: "{name: x, kind: dscp-map, at: ['spine1:*'], dscp_map: {26: 0}}",
	check:   (*validator).dscpMap,
}, {
	Kind: PFCOff, Group: GroupSwitch, Target: TargetPort, Keys: opt("half", "priorities"),
	Doc: "the port sends no pauses, or obeys none, or neither", Hits: "a packet that was dropped, or sent against a pause, where PFC would have been",
	Source:  "incident 6",
	Example: "{name: x, kind: pfc-off, at: ['leaf1:eth0'], half: send}",
	Variants: []string{
		"{name: x, kind: pfc-off, at: ['leaf1:eth0']}",
		"{name: x, kind: pfc-off, at: ['leaf1:eth0'], half: obey, priorities: [3]}",
	},
	check: func(v *validator) {
		if h := v.spec.Half; h != "" {
			v.word("half", string(h), []string{string(HalfSend), string(HalfObey)})
		}
	},
}, {
	Kind: PFCThresholds, Group: GroupSwitch, Target: TargetPort, Keys: keys(anyOf("xoff", "alpha", "xon", "headroom"), opt("priorities")),
	Doc: "the port pauses too early, too late, for too long, or has no room for what is under way", Hits: hitsForwarded,
	Source:  "incident 12: headroom too small for the cable; incident 7: α 1/64 in place of 1/16 (Guo et al., SIGCOMM 2016)",
	Example: "{name: x, kind: pfc-thresholds, at: ['leaf1:*'], headroom: 0B}",
	Variants: []string{
		"{name: x, kind: pfc-thresholds, at: ['leaf1:*'], xoff: 20KB}",
		"{name: x, kind: pfc-thresholds, at: ['leaf1:*'], alpha: 1/64}",
		"{name: x, kind: pfc-thresholds, at: ['leaf1:*'], xon: 0B}",
	},
	check: func(v *validator) {
		if s := v.spec; s.XOFF != nil && s.Alpha != 0 {
			v.wrong("alpha", "a threshold is static (xoff) or dynamic (alpha): give one of them")
		}
	},
}, {
	Kind: BufferAlpha, Group: GroupSwitch, Target: TargetSwitch, Keys: keys(req("alpha"), opt("priorities")),
	Doc: "egress queues may take another share of the shared memory", Hits: hitsForwarded,
	Source:  "incident 7: an upgrade of the operating system changed α",
	Example: "{name: x, kind: buffer-alpha, at: [leaf1], alpha: 1/64}",
}, {
	Kind: BufferShrink, Group: GroupSwitch, Target: TargetSwitch, Keys: req("buffer"),
	Doc: "the switch has less packet memory", Hits: hitsForwarded,
	Example: "{name: x, kind: buffer-shrink, at: [leaf1], buffer: 256KiB}",
}, {
	Kind: WatchdogOff, Group: GroupSwitch, Target: TargetSwitch,
	Doc: "the switch doesn't notice queues that never leave their pause", Hits: hitsSwitch,
	Source:  "incident 3: it is the watchdog that cuts off a NIC's storm",
	Example: "{name: x, kind: watchdog-off, at: ['leaf*'], may_miss: true}",
}, {
	Kind: HashSeed, Group: GroupSwitch, Target: TargetSwitch, Keys: opt("hash_seed"),
	Doc: "the switches hash with the same seed: of flows that one has spread the next one uses a single link", Hits: "a packet that went another way for it",
	Source:  "incident 5; polarisation",
	Example: "{name: x, kind: hash-seed, at: ['leaf*', 'spine*'], hash_seed: 7}",
}, {
	Kind: StuckQueue, Group: GroupSwitch, Target: TargetPort, Keys: req("priorities"),
	Doc: "the port's queues of some priorities are never served", Hits: "a packet that waits there, or found no place",
	Example: "{name: x, kind: stuck-queue, at: ['leaf1:eth2'], priorities: [3]}",
}, {
	Kind: RouteLate, Group: GroupSwitch, Target: TargetSwitch, Keys: req("delay"),
	Doc: "the switch hears of links that go down or come up so much later, and forwards into nothing until then", Hits: "a change of a route that came late",
	Source:  "incident 13: a black hole until convergence",
	Example: "{name: x, kind: route-late, at: ['leaf*'], delay: 1ms, may_miss: true}",
}, {
	Kind: Reboot, Group: GroupSwitch, Target: TargetSwitch, Keys: req("down"),
	Doc: "the switch loses all that it holds, forwards nothing while it is down, and comes back", Hits: hitsSwitch,
	Example: "{name: x, kind: reboot, at: [spine1], down: 2ms, schedule: {at: 1ms}}",
}, {
	Kind: CNPStarved, Group: GroupSwitch, Target: TargetPort, Keys: keys(opt("rate"), say(opt("priorities"), "the CNPs' priority; default 6")),
	Doc: "the egress queue of the CNPs is served with `rate` alone, without one not at all", Hits: "a packet that waits there, or found no place",
	Source:  "incident 14: CNPs in a starved class, and senders never slow down",
	Example: "{name: x, kind: cnp-starved, at: ['leaf1:eth0'], rate: 1Mbps}",
	Variants: []string{
		"{name: x, kind: cnp-starved, at: ['leaf1:eth0']}",
	},
}}

func (v *validator) dscpMap() {
	keys := make([]string, 0, len(v.spec.DSCPMap))
	for k := range v.spec.DSCPMap {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return strings.Compare(a, b) })
	for _, k := range keys {
		if d, err := strconv.ParseUint(k, 10, 8); err != nil || d > 63 {
			v.wrong("dscp_map."+k, "%q is not a DSCP from 0 to 63", k)
		}
		if p := v.spec.DSCPMap[k]; p > 7 {
			v.wrong("dscp_map."+k, "%d is not a priority from 0 to 7", p)
		}
	}
}
