package incidents

import "github.com/rocebed/rocebed/testbed"

// Where an incident can be had: what takes silicon that only rocebed's own nodes have is not the kernel's.
var (
	onSoftware = []testbed.Backend{testbed.Sim, testbed.Soft}
	onAll      = []testbed.Backend{testbed.Sim, testbed.Soft, testbed.Kernel}
)

const (
	guo   = "Guo et al., RDMA over Commodity Ethernet at Scale, SIGCOMM 2016"
	zhu   = "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015"
	sonic = "SONiC's RoCEv2 test plan"
)

// catalogue has an entry for each two files, by number.
var catalogue = []Incident{
	{
		Name: "go-back-0-livelock", Number: 1, Title: "go-back-0 livelock", Source: guo + " (RDMA transport livelock)",
		Seen:      "The link is fully used and no message ever arrives, though only one packet in 256 is lost.",
		Mechanism: "The NIC answers a lost packet by sending the whole message again. A message of 4 MB is 4,096 packets of 1 KB; each pass loses a packet before it is through.",
		Cure:      "Go-back-N: the NIC goes back to the lost packet. The link may go on losing.",
		Look:      "retransmitted_packets and sent_bytes against the workload's bytes; rcvd_seq_err; no completion in events.jsonl until the fault heals",
		Backends:  onSoftware,
		Figures: []Figure{
			{"the message took", Time, `workloads["message"].duration`},
			{"bytes sent a byte", Ratio, `double(delta("sent_bytes", {"node": "h1"})) / double(workloads["message"].bytes)`},
			{"packets lost", Count, `faults["every-256th"].hits`},
		},
	},
	{
		Name: "nic-pfc-storm", Number: 3, Title: "NIC PFC storm", Source: guo + " (NIC PFC pause frame storm)",
		Seen:      "One host's NIC hangs, and hosts all over the fabric stop sending.",
		Mechanism: "The stuck NIC pauses its switch for ever. What is on its way to it fills the leaf, which pauses the spine, which pauses the other leaves, and those every host that sends through them.",
		Cure:      "A watchdog in the switches: a queue that has been paused too long is emptied and its pauses are ignored.",
		Look:      "rx_prio_pause_duration of hosts that have nothing to do with it; pfc_storms and port_drops{reason=storm} where the watchdog acted",
		Backends:  onSoftware,
		Figures: []Figure{
			{"the others' goodput", Rate, `workloads["others"].goodput_bps`},
			{"h5 paused for", Time, `delta("rx_prio_pause_duration", {"node": "h5"})`},
			{"storms cut off", Count, `delta("pfc_storms")`},
		},
	},
	{
		Name: "slow-receiver", Number: 4, Title: "slow receiver", Source: guo + " (slow-receiver symptom)",
		Seen:      "Thousands of pauses a second that begin at servers, while no link carries what it could.",
		Mechanism: "The NIC's translation cache has entries for too few pages of 4 KiB. Each miss is a read over PCIe; the NIC writes slower than the wire brings, its receive buffer fills, and it pauses its switch.",
		Cure:      "Pages of 2 MiB: one entry covers what 512 did.",
		Look:      "tx_prio_pause of the host; mtt_misses; no queue_depth_bytes above zero before the pauses begin",
		Backends:  onSoftware,
		Figures: []Figure{
			{"pauses by the NIC", Count, `delta("tx_prio_pause", {"node": "h2"})`},
			{"translations missed", Count, `delta("mtt_misses", {"node": "h2"})`},
			{"goodput", Rate, `workloads["stream"].goodput_bps`},
		},
	},
	{
		Name: "victim-flow", Number: 8, Title: "victim flow", Source: zhu + " (PFC's limitations: the victim flow)",
		Seen:      "A flow between two idle hosts, with no full link on its way, gets a fraction of its rate.",
		Mechanism: "PFC pauses a priority of a whole link, not a flow. Four hosts send to one; its leaf pauses the link that two of them and the victim share.",
		Cure:      "DCQCN: the senders slow down to what their receiver's link carries, and the pauses end.",
		Look:      "tx_prio_pause of leaf2's uplink; the workload victim's goodput; rp_cnp_handled",
		Backends:  onAll,
		Figures: []Figure{
			{"the victim's goodput", Rate, `workloads["victim"].goodput_bps`},
			{"the crowd's goodput", Rate, `workloads["crowd"].goodput_bps`},
			{"pauses of the uplink", Count, `delta("tx_prio_pause", {"node": "leaf2", "port": "eth0"})`},
		},
	},
	{
		Name: "ecn-above-xoff", Number: 9, Title: "ECN threshold above XOFF", Source: zhu + " (buffer settings: ECN must come before PFC)",
		Seen:      "PFC is busy all the time; there are no marks and no CNPs, though ECN and DCQCN are on everywhere.",
		Mechanism: "A switch pauses its peers at XOFF, so queues never grow to the threshold above it at which marking begins.",
		Cure:      "Marking that begins well below XOFF.",
		Look:      "ecn_marked and np_cnp_sent (zero) beside tx_prio_pause; queue_high_water_bytes against kmin",
		Backends:  onAll,
		Figures: []Figure{
			{"pauses", Count, `delta("tx_prio_pause", {"node": "leaf1"})`},
			{"paused for", Time, `delta("tx_prio_pause_duration", {"node": "leaf1"})`},
			{"packets marked", Count, `delta("ecn_marked")`},
			{"CNPs", Count, `delta("np_cnp_sent")`},
		},
	},
	{
		Name: "corrupting-link", Number: 10, Title: "corrupting link", Source: "Zhuo et al., Understanding and Mitigating Packet Corruption in Data Center Networks, SIGCOMM 2017",
		Seen:      "Goodput collapses for some flows, with retransmissions, while no queue stands and no counter of drops moves.",
		Mechanism: "Bad or dirty optics flip bits on one link; receivers drop what fails its checksum, and go-back-N sends a window again for each.",
		Cure:      "The link is taken out of service until it is repaired; routes go round it.",
		Look:      "completer_retry_err without queue_drops or marks; rx_icrc_encapsulated of software NICs; fault_hits",
		Backends:  onAll,
		Figures: []Figure{
			{"times gone back", Count, `delta("completer_retry_err")`},
			{"slowest message", Time, `workloads["stream"].latency.max`},
			{"goodput", Rate, `workloads["stream"].goodput_bps`},
		},
	},
	{
		Name: "uplink-flap", Number: 13, Title: "uplink flap", Source: "Qian et al., Alibaba HPN: A Data Center Network for Large Language Model Training, SIGCOMM 2024 (links that flap); NCCL's documentation (NCCL_IB_TIMEOUT, error 12)",
		Seen:      "An uplink flaps, and training jobs die of retry exceeded (error 12), though another uplink is there.",
		Mechanism: "Until routes have converged, the leaf sends what hashes to the dead uplink into a black hole, for longer than the queue pairs retry.",
		Cure:      "Retries that outlast convergence (NCCL_IB_TIMEOUT, NCCL_IB_RETRY_CNT): some messages are late, none fails. Or routes that converge sooner: leave the fault slow-convergence out.",
		Look:      "retry_exceeded_err, the errors in events.jsonl against the times of the fault flap; link_downed",
		Backends:  onAll,
		Figures: []Figure{
			{"queue pairs that failed", Count, `delta("retry_exceeded_err")`},
			{"times gone back", Count, `delta("completer_retry_err")`},
			{"slowest message", Time, `workloads["stream"].latency.max`},
		},
	},
	{
		Name: "cnp-starved", Number: 14, Title: "CNPs starved", Source: zhu + " (CNPs have high priority); " + sonic + ", step 11",
		Seen:      "Switches mark, receivers send CNPs, and senders never slow down: pauses go on as if there were no DCQCN.",
		Mechanism: "CNPs were put into a class that other traffic starves on their way back.",
		Cure:      "CNPs in a strict class of their own, above all that is served before them now.",
		Look:      "np_cnp_sent at receivers against rp_cnp_handled at senders; queue_depth_bytes of the CNPs' queue",
		Backends:  onSoftware,
		Figures: []Figure{
			{"CNPs sent", Count, `delta("np_cnp_sent")`},
			{"CNPs that arrived", Count, `delta("rp_cnp_handled")`},
			{"pauses", Count, `delta("tx_prio_pause", {"node": "leaf1"})`},
			{"paused for", Time, `delta("tx_prio_pause_duration", {"node": "leaf1"})`},
		},
	},
	{
		Name: "incast-without-ecn", Number: 18, Title: "incast without ECN", Source: sonic + ", steps 2 and 3; " + guo + " (pauses that propagate)",
		Seen:      "Every synchronised step of a job makes pauses climb from the receiver's leaf to the spines and down to every other leaf.",
		Mechanism: "N hosts send to one at once. With PFC alone each switch on the way fills up to XOFF and pauses the one before it.",
		Cure:      "ECN at the switches, so that DCQCN slows the senders down before anybody is paused for long.",
		Look:      "tx_prio_pause of the spine; np_cnp_sent",
		Backends:  onAll,
		Figures: []Figure{
			{"pauses by the spine", Count, `delta("tx_prio_pause", {"node": "spine1"})`},
			{"paused for", Time, `delta("tx_prio_pause_duration", {"node": "spine1"})`},
			{"CNPs", Count, `delta("np_cnp_sent")`},
		},
	},
}
