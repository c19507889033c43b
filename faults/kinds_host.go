package faults

// The fault kinds in hosts.
const (
	ProcessPause Kind = "process-pause"
	ProcessKill  Kind = "process-kill"
	GPUStraggler Kind = "gpu-straggler"
	SlowClock    Kind = "slow-clock"
)

// The kinds of traffic beside the workloads.
const (
	TCPTraffic  Kind = "tcp-traffic"
	UDPTraffic  Kind = "udp-traffic"
	RoCEBurst   Kind = "roce-burst"
	IncastBurst Kind = "incast-burst"
)

const hitsSent = "a packet that was sent beside the workloads'"

var hostKinds = []Def{{
	Kind: ProcessPause, Group: GroupHost, Target: TargetHost,
	Doc: "the host's process stands still, its NICs' hardware too where it is software", Hits: "a host",
	Example: "{name: x, kind: process-pause, at: [h1], schedule: {at: 1ms, for: 500us}}",
}, {
	Kind: ProcessKill, Group: GroupHost, Target: TargetHost,
	Doc: "the host's process is killed: its queue pairs are gone, and their peers run into retry exceeded", Hits: "a host",
	Example: "{name: x, kind: process-kill, at: [h1], schedule: {at: 1ms}}",
}, {
	Kind: GPUStraggler, Group: GroupHost, Target: TargetHost, Keys: keys(oneOf("delay", "speed"), opt("gpus")),
	Doc: "GPUs take so much longer for each step of a collective, or work at `speed`", Hits: "a step that took longer",
	Example: "{name: x, kind: gpu-straggler, at: [h1], gpus: [0], delay: 20us}",
	Variants: []string{
		"{name: x, kind: gpu-straggler, at: [h1], speed: 50%}",
	},
	check: func(v *validator) {
		seen := map[int]bool{}
		for _, g := range v.spec.GPUs {
			if g < 0 || seen[g] {
				v.wrong("gpus", "%d is no number of a GPU, or is there already", g)
			}
			seen[g] = true
		}
	},
}, {
	Kind: SlowClock, Group: GroupHost, Target: TargetHost, Keys: say(req("speed"), "of the true time"),
	Doc: "the host's clock runs slow: its timers end late, and what it measures is too short", Hits: "a timer that ended late",
	Example: "{name: x, kind: slow-clock, at: [h1], speed: 90%}",
	check: func(v *validator) {
		if v.spec.Speed == 1 {
			v.wrong("speed", "100%% is no fault")
		}
	},
}}

var trafficKinds = []Def{{
	Kind: TCPTraffic, Group: GroupTraffic, Target: TargetNIC, Keys: keys(req("to"), say(opt("rate"), "of a stream, at most; default the line's"), opt("streams", "dscp")),
	Doc: "TCP streams share the links with the workloads, in a lossy class", Hits: hitsSent,
	Source:  "SONiC's test plan, step 9: lossless traffic keeps its share",
	Example: "{name: x, kind: tcp-traffic, at: ['h1:eth0'], to: ['h2:eth0'], streams: 4}",
	Variants: []string{
		"{name: x, kind: tcp-traffic, at: ['h1:eth0'], to: ['h2:eth0'], rate: 1Gbps, dscp: 8}",
	},
}, {
	Kind: UDPTraffic, Group: GroupTraffic, Target: TargetNIC, Keys: keys(req("to"), say(req("rate"), "payload of a stream, whatever happens to it"), say(opt("size"), "payload of a datagram; default 1400, or what the MTU allows"), opt("streams", "dscp")),
	Doc: "UDP streams that slow down for nobody share the links with the workloads", Hits: hitsSent,
	Source:  "SONiC's test plan, step 9",
	Example: "{name: x, kind: udp-traffic, at: ['h1:eth0'], to: ['h2:eth0'], rate: 10Gbps, size: 1400}",
	check: func(v *validator) {
		if v.spec.Size > 65507 {
			v.wrong("size", "a datagram of UDP carries at most 65507 bytes")
		}
	},
}, {
	Kind: RoCEBurst, Group: GroupTraffic, Target: TargetNIC, Keys: keys(req("to"), oneOf("bytes"), say(oneOf("rate"), "payload of a stream"), say(opt("size"), "of a message; default 64KiB"), say(opt("dscp"), "default 26"), opt("streams")),
	Doc: "RDMA WRITEs that react to no CNP share the lossless class with the workloads", Hits: hitsSent,
	Source:  "incident 8: a victim flow loses half its rate to pauses that are not for it",
	Example: "{name: x, kind: roce-burst, at: ['h1:eth0'], to: ['h2:eth0'], bytes: 4MB}",
	Variants: []string{
		"{name: x, kind: roce-burst, at: ['h1:eth0'], to: ['h2:eth0'], rate: 10Gbps, streams: 2}",
	},
}, {
	Kind: IncastBurst, Group: GroupTraffic, Target: TargetNIC, Keys: keys(say(req("to"), "the one NIC that all send to"), req("bytes"), say(opt("period"), "bursts come back so often; default one burst"), say(opt("dscp"), "default 26")),
	Doc: "all NICs selected send to one at the same moment", Hits: hitsSent,
	Source:  "incident 18; the BMWG's incast reference, N = 8 to 64",
	Example: "{name: x, kind: incast-burst, at: ['h1', 'h2', 'h3'], to: ['h4:eth0'], bytes: 1MB, period: 1ms}",
	Variants: []string{
		"{name: x, kind: incast-burst, at: ['h1', 'h2'], to: ['h4:eth0'], bytes: 1MB}",
	},
}}
