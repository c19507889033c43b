package metrics

// Counters of software NICs, under mlx5's names where mlx5 has one (drivers/infiniband/hw/mlx5/counters.c, and ethtool's
// for pauses). Those that say exactly what one of rdma_rxe's says are under that name too, so that an expectation
// holds on every backend.
func nicCounters() []Desc {
	d := func(name, unit, help string) Desc {
		return Desc{Name: name, Labels: []string{"node", "port"}, Unit: unit, Kind: Counter, Help: help, Source: SourceNIC}
	}
	return []Desc{
		d("out_of_sequence", "packets", "request packets whose PSN was ahead of the one expected"),
		d("packet_seq_err", "packets", "sequence-error NAKs that the requester took in"),
		d("implied_nak_seq_err", "events", "responses that showed that one before them was lost"),
		d("local_ack_timeout_err", "events", "times that the local ACK timer ran out"),
		d("rnr_nak_retry_err", "packets", "receiver-not-ready NAKs that the requester took in"),
		d("out_of_buffer", "packets", "requests that found no receive posted"),
		d("req_transport_retries_exceeded", "events", "work requests that failed because retry_cnt was used up"),
		d("req_rnr_retries_exceeded", "events", "work requests that failed because rnr_retry was used up"),
		d("rx_icrc_encapsulated", "packets", "RoCE packets with a wrong ICRC, which were dropped"),
		d("req_cqe_error", "messages", "send completions with an error, flushed ones not counted"),
		d("req_cqe_flush_error", "messages", "send completions that were flushed"),
		d("resp_cqe_error", "messages", "receive completions with an error, flushed ones not counted"),
		d("resp_cqe_flush_error", "messages", "receive completions that were flushed"),
		d("resp_local_length_error", "messages", "messages longer than their receive"),
		d("req_remote_invalid_request", "messages", "work requests that the responder found invalid"),
		d("req_remote_access_errors", "messages", "work requests that the responder had no access for"),
		d("resp_remote_access_errors", "packets", "requests that the responder had no access for"),
		d("rx_read_requests", "messages", "READ requests that the responder took in"),
		d("rx_write_requests", "messages", "WRITE requests that the responder took in"),
		d("rx_atomic_requests", "messages", "atomic requests that the responder took in"),
		d("np_ecn_marked_roce_packets", "packets", "packets that arrived CE-marked"),
		d("np_cnp_sent", "packets", "congestion notifications that the NIC sent"),
		d("rp_cnp_handled", "packets", "congestion notifications that slowed a queue pair down"),
		d("rp_cnp_ignored", "packets", "congestion notifications for nothing that could be slowed down"),
		d("retransmitted_packets", "packets", "request packets that were sent again"),
		d("acks_sent", "packets", "acknowledgements that the responder sent"),
		d("tx_discards_phy", "packets", "packets that found the NIC's link down"),
		d("mtt_hits", "events", "pages whose translation the NIC's cache had"),
		d("mtt_misses", "events", "pages whose translation had to be fetched"),
		d("iommu_misses", "events", "translations that the IOMMU had to be asked for"),
		d("roce_unmapped", "packets", "marked packets and CNPs for a queue pair that the kernel doesn't list"),
		d("stray_packets", "packets", "packets for no QP, or for one that can't take them"),
	}
}

// Counters of a software switch's ports, queues and packet memory.
func switchCounters() []Desc {
	d := func(name, unit string, kind Kind, labels []string, help string) Desc {
		return Desc{Name: name, Labels: labels, Unit: unit, Kind: kind, Help: help, Source: SourceSwitch}
	}
	port, prio, queue := []string{"node", "port"}, []string{"node", "port", "priority"}, []string{"node", "port", "queue"}
	return []Desc{
		d("port_rx_frames", "frames", Counter, port, "frames that came in, pauses not counted"),
		d("port_tx_frames", "frames", Counter, port, "frames that were sent, pauses not counted"),
		d("port_rx_bytes", "bytes", Counter, port, "bytes of frames that came in"),
		d("port_tx_bytes", "bytes", Counter, port, "bytes of frames that were sent"),
		d("port_drops", "frames", Counter, []string{"node", "port", "reason"}, "frames dropped: link_down, ttl, no_route, mtu, other, broken, egress and ingress (thresholds), headroom, storm"),
		d("queue_tx_frames", "frames", Counter, queue, "frames that the egress queue sent"),
		d("queue_tx_bytes", "bytes", Counter, queue, "bytes that the egress queue sent"),
		d("queue_drops", "frames", Counter, queue, "frames that the egress queue had no room for"),
		d("queue_depth_bytes", "bytes", Gauge, queue, "bytes that wait in the egress queue"),
		d("queue_high_water_bytes", "bytes", Gauge, queue, "the most bytes that ever waited in it"),
		d("headroom_high_water_bytes", "bytes", Gauge, prio, "the most bytes that an ingress priority group ever held in its headroom"),
		d("headroom_drops", "frames", Counter, prio, "frames of a lossless group that its headroom had no room for"),
		d("pfc_xoffs", "events", Counter, prio, "pauses of the peer that began"),
		d("pfc_storms", "events", Counter, prio, "pauses that the watchdog took for storms"),
		d("buffer_used_bytes", "bytes", Gauge, []string{"node"}, "bytes in the packet memory"),
		d("buffer_high_water_bytes", "bytes", Gauge, []string{"node"}, "the most bytes that ever were in it"),
	}
}

// Counters of pause frames, on NICs and switches alike.
func pauseCounters() []Desc {
	d := func(name, unit, help string) Desc {
		return Desc{Name: name, Labels: []string{"node", "port", "priority"}, Unit: unit, Kind: Counter, Help: help, Source: SourcePause}
	}
	return []Desc{
		d("rx_prio_pause", "frames", "pause frames that came in and spoke of the priority"),
		d("tx_prio_pause", "frames", "pause frames that were sent and spoke of the priority"),
		d("rx_prio_buf_discard", "packets", "packets that found no room in a NIC's receive buffer"),
		d("rx_prio_pause_duration", "ns", "for how long the port was paused in the priority"),
		d("tx_prio_pause_duration", "ns", "for how long the port paused its peer in the priority"),
	}
}
