package faults

import (
	"fmt"
	"slices"
	"time"

	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// Packets is the kind that names single packets.
const Packets Kind = "packets"

// The fault kinds on links.
const (
	Loss           Kind = "loss"           // packets vanish: random, Gilbert-Elliott or every nth
	Delay          Kind = "delay"          // packets arrive later, with jitter of a distribution
	Reorder        Kind = "reorder"        // some packets overtake others
	Duplicate      Kind = "duplicate"      // packets arrive twice
	Corrupt        Kind = "corrupt"        // one bit of a packet flips; the ICRC catches it
	BitErrors      Kind = "bit-error"      // every bit flips with a probability
	RateLimit      Kind = "rate"           // the link carries less
	MTUShrink      Kind = "mtu"            // longer packets vanish
	LinkDown       Kind = "down"           // the link is down
	LinkFlap       Kind = "flap"           // the link goes down and up with a period
	Unidirectional Kind = "unidirectional" // nothing arrives one way, and both ports keep their carrier
	BlackHole      Kind = "blackhole"      // what is routed over the link vanishes, and it stays up
)

var packetKinds = []Def{{
	Kind: Packets, Group: GroupPacket, Target: TargetDirection, Keys: anyOf("events", "data-pkt-events"),
	Doc:     "packets named by queue pair, PSN, iteration, class and more are dropped, damaged, marked, copied, held back or cut",
	Source:  "Lumina (SIGCOMM 2023) drops, marks and damages data packets by (QP, PSN, iteration)",
	Example: "{name: x, kind: packets, at: ['h1:eth0'], direction: egress, events: [{match: {qp: 0, psn: 5, iteration: 1..3}, do: drop}]}",
	check:   (*validator).events,
}}

var linkKinds = []Def{{
	Kind: Loss, Group: GroupLink, Target: TargetDirection, Keys: oneOf("probability", "every_nth", "gilbert_elliott"),
	Doc:     "packets vanish: each by lot, every nth, or in bursts",
	Source:  "incident 1: with every 256th packet lost, go-back-0 never ends a 4 MB message (Guo et al., SIGCOMM 2016)",
	Example: "{name: x, kind: loss, at: ['leaf1:eth0'], direction: egress, probability: 1%}",
	Variants: []string{
		"{name: x, kind: loss, at: ['leaf1:eth0'], every_nth: 100}",
		"{name: x, kind: loss, at: ['leaf1:eth0'], gilbert_elliott: {p: 1%, r: 30%, loss_bad: 50%}}",
	},
	check: (*validator).gilbertElliott,
}, {
	Kind: Delay, Group: GroupLink, Target: TargetDirection, Keys: keys(req("delay"), opt("jitter"), say(opt("distribution"), "`uniform` (default), `normal`, `pareto`, `paretonormal`")),
	Doc:     "packets arrive later, in order",
	Example: "{name: x, kind: delay, at: ['leaf1-spine1'], delay: 10us, jitter: 2us, distribution: pareto}",
	Variants: []string{
		"{name: x, kind: delay, at: [leaf1], delay: 10us}",
		"{name: x, kind: delay, at: [leaf1], delay: 10us, jitter: 2us, distribution: uniform}",
		"{name: x, kind: delay, at: [leaf1], delay: 10us, jitter: 2us, distribution: normal}",
		"{name: x, kind: delay, at: [leaf1], delay: 10us, jitter: 2us, distribution: paretonormal}",
	},
	check: (*validator).jitter,
}, {
	Kind: Reorder, Group: GroupLink, Target: TargetDirection, Keys: keys(req("probability"), oneOf("delay", "window"), opt("gap")),
	Doc:     "some packets overtake others: those that are hit overtake what is `delay` late, or `window` packets overtake those that are hit",
	Example: "{name: x, kind: reorder, at: [leaf1], probability: 2.5%, delay: 20us, gap: 5}",
	Variants: []string{
		"{name: x, kind: reorder, at: [leaf1], probability: 1%, window: 3}",
	},
}, {
	Kind: Duplicate, Group: GroupLink, Target: TargetDirection, Keys: req("probability"),
	Doc:     "packets arrive twice",
	Example: "{name: x, kind: duplicate, at: [leaf1], probability: 3%}",
}, {
	Kind: Corrupt, Group: GroupLink, Target: TargetDirection, Keys: req("probability"),
	Doc:     "one bit behind the UDP header flips; the ICRC catches it",
	Source:  "incident 10: bad optics cost goodput without congestion",
	Example: "{name: x, kind: corrupt, at: [leaf1], direction: ingress, probability: 1%}",
}, {
	Kind: BitErrors, Group: GroupLink, Target: TargetDirection, Keys: req("ber"),
	Doc:     "each bit flips with the probability `ber`, so that long packets suffer more",
	Source:  "incident 10; IEEE 802.3 asks for at most 1e-12 behind the FEC",
	Example: "{name: x, kind: bit-error, at: ['leaf1-spine1'], ber: 1e-7}",
	check: func(v *validator) {
		if r := v.spec.BER; !(r >= 0 && r < 0.5) {
			v.wrong("ber", "must be below 0.5")
		}
	},
}, {
	Kind: RateLimit, Group: GroupLink, Target: TargetDirection, Keys: req("rate"),
	Doc:     "the link carries less",
	Example: "{name: x, kind: rate, at: [leaf1], rate: 25Gbps, schedule: {at: 1ms, for: 2ms, every: 5ms, count: 3}}",
}, {
	Kind: MTUShrink, Group: GroupLink, Target: TargetDirection, Keys: req("mtu"),
	Doc:     "IP packets longer than `mtu` vanish, and nobody is told",
	Source:  "incident 16: one hop has a smaller MTU; small messages work, large ones end in retry exceeded",
	Example: "{name: x, kind: mtu, at: ['leaf1-spine1'], mtu: 1500}",
}, {
	Kind: LinkDown, Group: GroupLink, Target: TargetLink,
	Doc: "the link is down: both ports lose their carrier, what is on the way is lost, routes go round it", Hits: "a port that lost its carrier",
	Source:  "SONiC's test plan, step 10: an uplink goes down and comes up under traffic",
	Example: "{name: x, kind: down, at: ['leaf1:eth1']}",
}, {
	Kind: LinkFlap, Group: GroupLink, Target: TargetLink, Keys: keys(req("period"), oneOf("down", "duty"), say(opt("distribution"), "`fixed` (default), or `exponential`: times down and up vary about their mean")),
	Doc: "the link goes down and comes up again and again", Hits: "a port that lost its carrier",
	Source:  "incident 13: a flapping uplink is a black hole until routes converge",
	Example: "{name: x, kind: flap, at: ['leaf1:eth1'], period: 4ms, down: 1500us}",
	Variants: []string{
		"{name: x, kind: flap, at: ['leaf1:eth1'], period: 40ms, duty: 25%}",
		"{name: x, kind: flap, at: ['leaf1:eth1'], period: 40ms, duty: 25%, distribution: exponential}",
	},
	check: (*validator).flap,
}, {
	Kind: Unidirectional, Group: GroupLink, Target: TargetDirection,
	Doc:     "nothing arrives one way, pause frames neither, and both ports keep their carrier",
	Source:  "a fibre of a pair is broken: what UDLD (RFC 5171) looks for",
	Example: "{name: x, kind: unidirectional, at: ['leaf1-spine1'], direction: egress}",
	check: func(v *validator) {
		if s := v.spec; s.Direction != Egress && s.Direction != Ingress && !s.OneWay {
			v.wrong("direction", "says which way nothing arrives: egress or ingress (for both ways use down)")
		}
	},
}, {
	Kind: BlackHole, Group: GroupLink, Target: TargetDirection,
	Doc:     "IP packets vanish, while the link stays up and ARP and pause frames pass: no route is withdrawn, and flows that hash to it starve",
	Source:  "incident 13, before convergence; one member of an ECMP group forwards to nowhere",
	Example: "{name: x, kind: blackhole, at: ['leaf1:eth2'], direction: egress}",
}}

// shortest is the least period with which a fault may come back, fabric time.
const shortest = time.Microsecond

// Distributions lists the jitter distributions; the empty one is uniform.
func Distributions() []string { return []string{"uniform", "normal", "pareto", "paretonormal"} }

// Exponential is the distribution of a flap whose times vary.
const Exponential = "exponential"

// PacketEvents are a fault's events, Lumina's behind the others.
func (s *Spec) PacketEvents() []packet.Event {
	out := slices.Clone(s.Events)
	for _, l := range s.DataPktEvents {
		out = append(out, l.Event())
	}
	return out
}

func (v *validator) events() {
	if n := len(v.spec.Events) + len(v.spec.DataPktEvents); n > packet.MaxEvents {
		v.wrong("events", "%d events are more than %d", n, packet.MaxEvents)
		return
	}
	v.errs = append(v.errs, packet.Validate("events", v.spec.Events), packet.ValidateLumina("data-pkt-events", v.spec.DataPktEvents))
}

func (v *validator) jitter() {
	s := v.spec
	if s.Jitter < 0 || s.Jitter > max(s.Delay, 0) {
		v.wrong("jitter", "must be between 0 and the delay (%v)", s.Delay)
	}
	if s.Distribution != "" {
		if v.word("distribution", s.Distribution, Distributions()) && s.Jitter == 0 {
			v.wrong("distribution", "needs a jitter")
		}
	}
}

func (v *validator) flap() {
	s := v.spec
	if s.Period > 0 && s.Period < shortest {
		v.wrong("period", "must be at least %v: no link flaps faster", shortest)
	}
	if s.Down > 0 && s.Period > 0 && s.Down >= s.Period {
		v.wrong("down", "must be shorter than the period (%v)", s.Period)
	}
	if s.Duty >= 1 {
		v.wrong("duty", "must be below 100%% (for always there is down)")
	}
	if s.Distribution != "" {
		v.word("distribution", s.Distribution, []string{"fixed", Exponential})
	}
}

func (v *validator) gilbertElliott() {
	ge := v.spec.GE
	if ge == nil {
		return
	}
	v.share("gilbert_elliott.p", ge.P)
	v.share("gilbert_elliott.r", ge.R)
	for _, f := range []struct {
		key   string
		share topo.Fraction
	}{{"gilbert_elliott.loss_bad", ge.LossBad}, {"gilbert_elliott.loss_good", ge.LossGood}} {
		if !(f.share >= 0 && f.share <= 1) {
			v.wrong(f.key, "must be between 0%% and 100%%")
		}
	}
	if ge.LossBad == 0 && ge.LossGood == 0 {
		v.wrong("gilbert_elliott.loss_bad", "nothing is lost in either state")
	}
}

func (v *validator) share(key string, f topo.Fraction) {
	if !(f > 0 && f <= 1) {
		v.wrong(key, "must be above 0%% and at most 100%%")
	}
}

// word refuses what is none of some words, and says whether it is one.
func (v *validator) word(key, word string, of []string) bool {
	if slices.Contains(of, word) {
		return true
	}
	v.wrong(key, "%w", fmt.Errorf("%q is no %s%s", word, key, strict.DidYouMean(word, of)))
	return false
}
