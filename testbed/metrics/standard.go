package metrics

//go:generate go run ./gendoc ../../docs/metrics.md

// Standard is the registry of everything that rocebed measures.
var Standard = standard()

// Sources name where metrics are read; they head the sections of docs/metrics.md.
const (
	SourceHW        = "rxe hw_counters, and what software NICs count alike"
	SourceInterface = "interface"
	SourceQdisc     = "qdisc"
	SourceNIC       = "software NIC"
	SourceSwitch    = "software switch"
	SourcePause     = "software NIC and switch: flow control"
	SourceMachine   = "machine"
	SourceLoop      = "loop"
	SourceWorkload  = "workload"
	SourceFault     = "fault"
)

func standard() *Registry {
	r := New()
	r.MustRegister(hwCounters()...)
	r.MustRegister(interfaceCounters()...)
	r.MustRegister(qdiscCounters()...)
	r.MustRegister(nicCounters()...)
	r.MustRegister(switchCounters()...)
	r.MustRegister(pauseCounters()...)
	r.MustRegister(ownMeasures()...)
	return r
}

// Per-NIC counters of rdma_rxe, and of software NICs, under the kernel's own names
// (drivers/infiniband/sw/rxe/rxe_hw_counters.c, and the byte counters that Linux 7.x added).
func hwCounters() []Desc {
	d := func(name, unit, help string) Desc {
		return Desc{Name: name, Labels: []string{"node", "port"}, Unit: unit, Kind: Counter, Help: help, Source: SourceHW}
	}
	return []Desc{
		d("sent_pkts", "packets", "RoCE packets that the NIC sent"),
		d("rcvd_pkts", "packets", "RoCE packets that the NIC took in"),
		d("sent_bytes", "bytes", "bytes of RoCE packets that the NIC sent"),
		d("rcvd_bytes", "bytes", "bytes of RoCE packets that the NIC took in"),
		d("duplicate_request", "packets", "request packets whose PSN the responder had seen before"),
		d("out_of_seq_request", "packets", "request packets whose PSN was ahead of the one expected: something before them is missing"),
		d("rcvd_rnr_err", "packets", "receiver-not-ready NAKs that the requester took in"),
		d("send_rnr_err", "packets", "receiver-not-ready NAKs that the responder sent"),
		d("rcvd_seq_err", "packets", "sequence-error NAKs that the requester took in"),
		d("ack_deferred", "events", "acknowledgements whose handling was put off to the task"),
		d("retry_exceeded_err", "events", "work requests that failed because retry_cnt was used up (RETRY_EXC_ERR)"),
		d("retry_rnr_exceeded_err", "events", "work requests that failed because rnr_retry was used up (RNR_RETRY_EXC_ERR)"),
		d("completer_retry_err", "events", "times that the requester went back and sent again"),
		d("send_err", "events", "packets that the NIC could not hand to the network stack"),
		d("link_downed", "events", "times that the NIC's link went down"),
		d("rdma_sends", "messages", "SEND and WRITE work requests that the requester carried out"),
		d("rdma_recvs", "messages", "messages that the responder received"),
	}
}

// Counters of a port's network interface (/sys/class/net/*/statistics).
func interfaceCounters() []Desc {
	d := func(name, unit, help string) Desc {
		return Desc{Name: name, Labels: []string{"node", "port"}, Unit: unit, Kind: Counter, Help: help, Source: SourceInterface}
	}
	return []Desc{
		d("if_rx_packets", "packets", "packets that the interface received"),
		d("if_tx_packets", "packets", "packets that the interface sent"),
		d("if_rx_bytes", "bytes", "bytes that the interface received"),
		d("if_tx_bytes", "bytes", "bytes that the interface sent"),
		d("if_rx_dropped", "packets", "received packets that the interface dropped"),
		d("if_tx_dropped", "packets", "packets that the interface dropped instead of sending"),
		d("if_rx_errors", "packets", "received packets with an error"),
		d("if_tx_errors", "packets", "packets that could not be sent for an error"),
	}
}

// Counters of a port and the cable behind it, by slot: shape (the shaper), mark (the marker),
// queue (the buffer), delay (the delay line on the cable).
func qdiscCounters() []Desc {
	d := func(name, unit string, kind Kind, help string) Desc {
		return Desc{Name: name, Labels: []string{"node", "port", "slot"}, Unit: unit, Kind: kind, Help: help, Source: SourceQdisc}
	}
	return []Desc{
		d("qdisc_sent_packets", "packets", Counter, "packets that left the slot"),
		d("qdisc_sent_bytes", "bytes", Counter, "bytes that left the slot"),
		d("qdisc_drops", "packets", Counter, "packets that the slot dropped: over its limit, or as its impairment says"),
		d("qdisc_overlimits", "events", Counter, "times that the slot held a packet back because of its rate or its threshold"),
		d("qdisc_requeues", "packets", Counter, "packets that the slot took back"),
		d("qdisc_backlog_packets", "packets", Gauge, "packets standing in the slot"),
		d("qdisc_backlog_bytes", "bytes", Gauge, "bytes standing in the slot"),
		d("ecn_marked", "packets", Counter, "packets that the slot's marker set to CE; of a software switch, whose slots are queue0 to queue7, that the queue did"),
	}
}

// What the harness measures itself.
func ownMeasures() []Desc {
	return []Desc{
		{"softnet_dropped", []string{"cpu"}, "packets", Counter, "packets that the kernel dropped because a CPU's backlog was full: the machine's fault, not the fabric's", SourceMachine},
		{"pause_reaction_p50", []string{}, "ns", Gauge, "what half of the pauses took at most, from an ingress group's threshold to its peer's silence, in fabric time", SourceMachine},
		{"pause_reaction_p999", []string{}, "ns", Gauge, "the same, for 999 in 1000", SourceMachine},
		{"loop_lateness_max", []string{"node"}, "ns", Gauge, "the longest that a due event of the host's loop waited, in fabric time", SourceLoop},
		{"pacer_lateness_max", []string{"node", "port"}, "ns", Gauge, "the longest that a frame of a software node was handed to its interface after it was due to have crossed the link, in fabric time", SourceLoop},
		{"socket_dropped", []string{"node", "port"}, "packets", Counter, "frames that came in at a software node's interface and found no room in its socket: the machine's fault, not the fabric's", SourceMachine},
		{"socket_refused", []string{"node", "port"}, "packets", Counter, "frames of a software node that the kernel refused to send: the interface was down, or its MTU too small", SourceMachine},
		{"shaper_busy_time", []string{"node", "port"}, "ns", Gauge, "time for which the port's shaper was watched while packets certainly waited for it and no fault was at its rate or link", SourceMachine},
		{"shaper_share", []string{"node", "port"}, "1", Gauge, "part of its rate that the shaper gave in that time; 1 where it never was watched", SourceMachine},
		{"shaper_readings", nil, "events", Gauge, "times that a node's shapers were read", SourceMachine},
		{"shaper_reading_time", nil, "ns", Gauge, "time that this took", SourceMachine},
		{"cpu_idle_share", nil, "1", Gauge, "part of the time since the workloads began in which the processors had nothing to do, in a guest the guest's", SourceMachine},
		{"cpu_steal_share", nil, "1", Gauge, "part of that time that a hypervisor gave to others; emulation (TCG) does not say", SourceMachine},
		{"fault_hits", []string{"fault"}, "packets", Counter, "packets (or events) that a fault has touched", SourceFault},
		{"workload_bytes", []string{"workload"}, "bytes", Counter, "payload bytes of completed work requests", SourceWorkload},
		{"workload_messages", []string{"workload"}, "messages", Counter, "completed work requests", SourceWorkload},
		{"workload_verified_bytes", []string{"workload"}, "bytes", Counter, "payload bytes found right at their destination", SourceWorkload},
		{"workload_errors", []string{"workload"}, "messages", Counter, "work requests that completed with an error", SourceWorkload},
	}
}
