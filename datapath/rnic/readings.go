package rnic

import "fmt"

// Reading is one counter as people read it.
type Reading struct {
	Name  string // mlx5's where it has one: ethtool's and hw_counters'
	Unit  string // packets, frames, bytes, ns or events
	Help  string
	Value uint64
	Own   bool // the name is ours: mlx5 has no such counter
}

// Readings are all counters, always the same ones in the same order. Pause durations are in ns, mlx5's in µs.
func (c *Counters) Readings() []Reading {
	out := make([]Reading, 0, 40+8*9)
	add := func(name, unit string, v uint64, help string) {
		out = append(out, Reading{Name: name, Unit: unit, Help: help, Value: v})
	}
	own := func(name, unit string, v uint64, help string) {
		out = append(out, Reading{Name: name, Unit: unit, Help: help, Value: v, Own: true})
	}
	add("port_xmit_packets", "packets", c.TxPackets, "RoCE packets sent")
	add("port_xmit_bytes", "bytes", c.TxBytes, "bytes of RoCE packets sent, from the Ethernet header on")
	add("port_rcv_packets", "packets", c.RxPackets, "RoCE packets received whole")
	add("port_rcv_bytes", "bytes", c.RxBytes, "bytes of RoCE packets received, from the Ethernet header on")

	add("out_of_sequence", "packets", c.OutOfSequence, "requests that came beyond the PSN expected")
	add("duplicate_request", "packets", c.DuplicateRequest, "requests that came again")
	add("out_of_buffer", "packets", c.OutOfBuffer, "requests and datagrams that found no receive posted")
	add("packet_seq_err", "packets", c.PacketSeqErr, "NAKs for a sequence error received")
	add("implied_nak_seq_err", "packets", c.ImpliedNakSeqErr, "responses received that show that one before was lost")
	add("local_ack_timeout_err", "events", c.LocalAckTimeoutErr, "local ACK timeouts")
	add("rnr_nak_retry_err", "packets", c.RNRNakRetryErr, "RNR NAKs received")
	add("rx_icrc_encapsulated", "packets", c.RxICRCEncapsulated, "RoCE packets received with a wrong ICRC")
	add("req_cqe_error", "events", c.ReqCQEError, "send completions with an error")
	add("req_cqe_flush_error", "events", c.ReqCQEFlushError, "send completions that were flushed")
	add("resp_cqe_error", "events", c.RespCQEError, "receive completions with an error")
	add("resp_cqe_flush_error", "events", c.RespCQEFlushError, "receive completions that were flushed")
	add("resp_local_length_error", "events", c.RespLocalLengthError, "messages too long for their receive")
	add("req_remote_invalid_request", "events", c.ReqRemoteInvalid, "requests that the responder found invalid")
	add("req_remote_access_errors", "events", c.ReqRemoteAccess, "requests that the responder refused access")
	add("resp_remote_access_errors", "events", c.RespRemoteAccess, "requests that were refused access")
	add("req_transport_retries_exceeded", "events", c.RetryExceeded, "queue pairs that gave up after retry_cnt")
	add("req_rnr_retries_exceeded", "events", c.RNRRetryExceeded, "queue pairs that gave up after rnr_retry")
	add("rx_read_requests", "packets", c.RxReadRequests, "READ requests received")
	add("rx_write_requests", "messages", c.RxWriteRequests, "WRITEs received")
	add("rx_atomic_requests", "packets", c.RxAtomicRequests, "atomic requests received")

	add("np_ecn_marked_roce_packets", "packets", c.ECNMarked, "packets received CE-marked")
	add("np_cnp_sent", "packets", c.CNPSent, "CNPs sent")
	add("rp_cnp_handled", "packets", c.CNPHandled, "CNPs that a queue pair reacted to")
	add("rp_cnp_ignored", "packets", c.CNPIgnored, "CNPs for no queue pair, for one that ignores them, or where DCQCN is off")

	add("tx_discards_phy", "packets", c.TxDiscards, "packets that found the link down")

	for i := range c.Priority {
		p := &c.Priority[i]
		name := func(format string) string { return fmt.Sprintf(format, i) }
		add(name("tx_prio%d_packets"), "packets", p.TxPackets, "packets sent in the priority")
		add(name("tx_prio%d_bytes"), "bytes", p.TxBytes, "bytes sent in the priority")
		add(name("rx_prio%d_packets"), "packets", p.RxPackets, "packets taken into the receive buffer")
		add(name("rx_prio%d_bytes"), "bytes", p.RxBytes, "bytes taken into the receive buffer")
		add(name("rx_prio%d_buf_discard"), "packets", p.RxBufferDiscards, "packets that found no room in the receive buffer")
		add(name("rx_prio%d_pause"), "frames", p.RxPause, "pause frames received for the priority")
		add(name("tx_prio%d_pause"), "frames", p.TxPause, "pause frames sent for the priority")
		add(name("rx_prio%d_pause_duration"), "ns", p.RxPauseTime, "time that the peer kept the priority silent")
		add(name("tx_prio%d_pause_duration"), "ns", p.TxPauseTime, "time that the priority kept the peer silent")
	}

	own("retransmitted_packets", "packets", c.RetransmittedPackets, "request packets sent again")
	own("retries", "events", c.Retries, "times that a requester went back or repeated something, RNR NAKs aside")
	own("rnr_naks_sent", "packets", c.RNRNakSent, "requests that found no receive and were answered with an RNR NAK")
	own("acks_sent", "packets", c.AcksSent, "ACKs and NAKs sent")
	own("stray_packets", "packets", c.StrayPackets, "packets received for no queue pair that could take them, or with the port down")
	own("ghost_acks", "packets", c.GhostACKs, "responses received to nothing outstanding")
	own("mtt_hits", "events", c.MTTHits, "pages whose translation the device had")
	own("mtt_misses", "events", c.MTTMisses, "pages whose translation had to be fetched")
	own("iommu_hits", "events", c.IOMMUHits, "pages whose IOMMU translation was at hand")
	own("iommu_misses", "events", c.IOMMUMisses, "pages that the IOMMU had to walk for")
	return out
}
