package rnic

// Counters are a device's, under the names that mlx5 gives them where it has one.
type Counters struct {
	TxPackets, TxBytes uint64 // RoCE; bytes from the Ethernet header on
	RxPackets, RxBytes uint64

	OutOfSequence        uint64 // out_of_sequence: requests beyond the one expected
	DuplicateRequest     uint64 // duplicate_request
	OutOfBuffer          uint64 // out_of_buffer: requests and datagrams that found no receive
	RNRNakSent           uint64 // of them, those that were answered with an RNR NAK
	PacketSeqErr         uint64 // packet_seq_err: NAKs for a sequence error that came
	ImpliedNakSeqErr     uint64 // implied_nak_seq_err: responses that showed that one before was lost
	LocalAckTimeoutErr   uint64 // local_ack_timeout_err
	RNRNakRetryErr       uint64 // rnr_nak_retry_err: RNR NAKs that came
	RxICRCEncapsulated   uint64 // rx_icrc_encapsulated: packets with a wrong ICRC
	ReqCQEError          uint64 // req_cqe_error: completions of sends with an error
	ReqCQEFlushError     uint64 // req_cqe_flush_error
	RespCQEError         uint64 // resp_cqe_error
	RespCQEFlushError    uint64 // resp_cqe_flush_error
	RespLocalLengthError uint64 // resp_local_length_error
	ReqRemoteInvalid     uint64 // req_remote_invalid_request
	ReqRemoteAccess      uint64 // req_remote_access_errors
	RespRemoteAccess     uint64 // resp_remote_access_errors
	RxReadRequests       uint64 // rx_read_requests
	RxWriteRequests      uint64 // rx_write_requests
	RxAtomicRequests     uint64 // rx_atomic_requests

	Retries              uint64 // times that a requester went back, or was told what to repeat, RNR NAKs aside
	RetryExceeded        uint64 // req_transport_retries_exceeded
	RNRRetryExceeded     uint64 // req_rnr_retries_exceeded
	RetransmittedPackets uint64 // data packets sent again
	StrayPackets         uint64 // packets for no QP, or one that can't take them, or that found the port down
	GhostACKs            uint64 // responses to nothing outstanding
	AcksSent             uint64
	TxDiscards           uint64 // tx_discards_phy: packets that found the link down

	ECNMarked  uint64 // np_ecn_marked_roce_packets: packets that came CE-marked
	CNPSent    uint64 // np_cnp_sent
	CNPHandled uint64 // rp_cnp_handled
	CNPIgnored uint64 // rp_cnp_ignored: CNPs for no queue pair, for one that ignores them, or where DCQCN is off

	Priority [8]PriorityCounters

	MTTHits, MTTMisses     uint64 // the device's address translation
	IOMMUHits, IOMMUMisses uint64
}

// PriorityCounters are a priority's of the port.
type PriorityCounters struct {
	TxPackets, TxBytes uint64 // tx_prioN_packets, tx_prioN_bytes
	RxPackets, RxBytes uint64 // rx_prioN_packets, rx_prioN_bytes
	RxBufferDiscards   uint64 // rx_prioN_buf_discard: packets that found no room in the receive buffer
	RxPause            uint64 // rx_prioN_pause: pause frames that came for it
	TxPause            uint64 // tx_prioN_pause: pause frames that went for it
	RxPauseTime        uint64 // rx_prioN_pause_duration: how long the peer kept it silent, ns
	TxPauseTime        uint64 // tx_prioN_pause_duration: how long it kept the peer silent, ns
}
