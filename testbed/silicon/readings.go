package silicon

import (
	"strconv"

	"github.com/rocebed/rocebed/datapath/asic"
	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/testbed/metrics"
)

// Readings gathers the metrics of hosts and switches. Each is read on its loop.
type Readings struct {
	Samples []metrics.Sample
}

// nicMetrics are a NIC's, those under rdma_rxe's names first.
var nicMetrics = []struct {
	name  string
	value func(*rnic.Counters) uint64
}{
	{"sent_pkts", func(c *rnic.Counters) uint64 { return c.TxPackets }},
	{"rcvd_pkts", func(c *rnic.Counters) uint64 { return c.RxPackets }},
	{"sent_bytes", func(c *rnic.Counters) uint64 { return c.TxBytes }},
	{"rcvd_bytes", func(c *rnic.Counters) uint64 { return c.RxBytes }},
	{"duplicate_request", func(c *rnic.Counters) uint64 { return c.DuplicateRequest }},
	{"out_of_seq_request", func(c *rnic.Counters) uint64 { return c.OutOfSequence }},
	{"rcvd_rnr_err", func(c *rnic.Counters) uint64 { return c.RNRNakRetryErr }},
	{"send_rnr_err", func(c *rnic.Counters) uint64 { return c.RNRNakSent }},
	{"rcvd_seq_err", func(c *rnic.Counters) uint64 { return c.PacketSeqErr }},
	{"retry_exceeded_err", func(c *rnic.Counters) uint64 { return c.RetryExceeded }},
	{"retry_rnr_exceeded_err", func(c *rnic.Counters) uint64 { return c.RNRRetryExceeded }},
	{"send_err", func(*rnic.Counters) uint64 { return 0 }}, // there is no network stack that could refuse a packet
	{"completer_retry_err", func(c *rnic.Counters) uint64 { return c.Retries }},

	{"out_of_sequence", func(c *rnic.Counters) uint64 { return c.OutOfSequence }},
	{"packet_seq_err", func(c *rnic.Counters) uint64 { return c.PacketSeqErr }},
	{"implied_nak_seq_err", func(c *rnic.Counters) uint64 { return c.ImpliedNakSeqErr }},
	{"local_ack_timeout_err", func(c *rnic.Counters) uint64 { return c.LocalAckTimeoutErr }},
	{"rnr_nak_retry_err", func(c *rnic.Counters) uint64 { return c.RNRNakRetryErr }},
	{"out_of_buffer", func(c *rnic.Counters) uint64 { return c.OutOfBuffer }},
	{"req_transport_retries_exceeded", func(c *rnic.Counters) uint64 { return c.RetryExceeded }},
	{"req_rnr_retries_exceeded", func(c *rnic.Counters) uint64 { return c.RNRRetryExceeded }},
	{"rx_icrc_encapsulated", func(c *rnic.Counters) uint64 { return c.RxICRCEncapsulated }},
	{"req_cqe_error", func(c *rnic.Counters) uint64 { return c.ReqCQEError }},
	{"req_cqe_flush_error", func(c *rnic.Counters) uint64 { return c.ReqCQEFlushError }},
	{"resp_cqe_error", func(c *rnic.Counters) uint64 { return c.RespCQEError }},
	{"resp_cqe_flush_error", func(c *rnic.Counters) uint64 { return c.RespCQEFlushError }},
	{"resp_local_length_error", func(c *rnic.Counters) uint64 { return c.RespLocalLengthError }},
	{"req_remote_invalid_request", func(c *rnic.Counters) uint64 { return c.ReqRemoteInvalid }},
	{"req_remote_access_errors", func(c *rnic.Counters) uint64 { return c.ReqRemoteAccess }},
	{"resp_remote_access_errors", func(c *rnic.Counters) uint64 { return c.RespRemoteAccess }},
	{"rx_read_requests", func(c *rnic.Counters) uint64 { return c.RxReadRequests }},
	{"rx_write_requests", func(c *rnic.Counters) uint64 { return c.RxWriteRequests }},
	{"rx_atomic_requests", func(c *rnic.Counters) uint64 { return c.RxAtomicRequests }},
	{"retransmitted_packets", func(c *rnic.Counters) uint64 { return c.RetransmittedPackets }},
	{"acks_sent", func(c *rnic.Counters) uint64 { return c.AcksSent }},
	{"tx_discards_phy", func(c *rnic.Counters) uint64 { return c.TxDiscards }},
	{"np_ecn_marked_roce_packets", func(c *rnic.Counters) uint64 { return c.ECNMarked }},
	{"np_cnp_sent", func(c *rnic.Counters) uint64 { return c.CNPSent }},
	{"rp_cnp_handled", func(c *rnic.Counters) uint64 { return c.CNPHandled }},
	{"rp_cnp_ignored", func(c *rnic.Counters) uint64 { return c.CNPIgnored }},
	{"mtt_hits", func(c *rnic.Counters) uint64 { return c.MTTHits }},
	{"mtt_misses", func(c *rnic.Counters) uint64 { return c.MTTMisses }},
	{"iommu_misses", func(c *rnic.Counters) uint64 { return c.IOMMUMisses }},
	{"stray_packets", func(c *rnic.Counters) uint64 { return c.StrayPackets }},
}

// Total sums one metric over a host's NICs.
func (h *Host) Total(metric string) (sum float64) {
	for i := range nicMetrics {
		if m := &nicMetrics[i]; m.name == metric {
			for _, n := range h.NICs {
				c := n.Counters()
				sum += float64(m.value(&c))
			}
		}
	}
	return sum
}

// Host reads a host's NICs.
func (r *Readings) Host(h *Host) {
	for _, n := range h.NICs {
		c, labels := n.Counters(), n.Port.labels()
		for i := range nicMetrics {
			m := &nicMetrics[i]
			r.add(m.name, labels, float64(m.value(&c)))
		}
		r.add("link_downed", labels, float64(n.Port.lost))
		for i := range c.Priority {
			r.priority(n.Port, i, &c.Priority[i])
		}
	}
}

// priority reads one priority of a NIC.
func (r *Readings) priority(p *Port, i int, c *rnic.PriorityCounters) {
	if i != roceCustom && *c == (rnic.PriorityCounters{}) {
		return
	}
	labels := p.labelled(digits[i])
	r.add("rx_prio_pause", labels, float64(c.RxPause))
	r.add("tx_prio_pause", labels, float64(c.TxPause))
	r.add("rx_prio_pause_duration", labels, float64(c.RxPauseTime))
	r.add("tx_prio_pause_duration", labels, float64(c.TxPauseTime))
	r.add("rx_prio_buf_discard", labels, float64(c.RxBufferDiscards))
}

// Switch reads a switch. Queues and priorities that nothing ever used are left out.
func (r *Readings) Switch(name string, s *Switch) {
	m := s.Memory()
	node := []string{name}
	r.add("buffer_used_bytes", node, float64(m.Total))
	r.add("buffer_high_water_bytes", node, float64(m.HighWater))
	for i, p := range s.Ports {
		st, labels := s.Stats(i), p.labels()
		r.add("port_rx_frames", labels, float64(st.RxFrames))
		r.add("port_tx_frames", labels, float64(st.TxFrames))
		r.add("port_rx_bytes", labels, float64(st.RxBytes))
		r.add("port_tx_bytes", labels, float64(st.TxBytes))
		r.add("link_downed", labels, float64(p.lost))
		for k, why := range reasons {
			if st.Drops[why] > 0 || why == asic.DropEgress {
				r.add("port_drops", p.labelled(reasonLabels[k]), float64(st.Drops[why]))
			}
		}
		for q := range st.Queues {
			r.queue(p, q, &st)
		}
	}
}

// roceCustom is the priority, and the queue, that RoCE goes in by custom: it is always read, so that what stays zero
// there can be told from what nobody measures.
const roceCustom = 3

func (r *Readings) queue(p *Port, i int, st *asic.PortStats) {
	q, g, number := &st.Queues[i], &st.Groups[i], digits[i]
	if i == roceCustom || q.TxFrames > 0 || q.Drops > 0 || q.HighWater > 0 {
		labels := p.labelled(number)
		r.add("queue_tx_frames", labels, float64(q.TxFrames))
		r.add("queue_tx_bytes", labels, float64(q.TxBytes))
		r.add("queue_drops", labels, float64(q.Drops))
		r.add("queue_depth_bytes", labels, float64(q.Bytes))
		r.add("queue_high_water_bytes", labels, float64(q.HighWater))
		r.add("ecn_marked", p.labelled(queueLabels[i]), float64(q.Marked))
	}
	if i == roceCustom || g.HeadroomHigh > 0 || g.HeadroomDrops > 0 || st.XOFFs[i] > 0 || st.Storms[i] > 0 || st.RxPause[i] > 0 || st.TxPause[i] > 0 {
		labels := p.labelled(number)
		r.add("headroom_high_water_bytes", labels, float64(g.HeadroomHigh))
		r.add("headroom_drops", labels, float64(g.HeadroomDrops))
		r.add("pfc_xoffs", labels, float64(st.XOFFs[i]))
		r.add("pfc_storms", labels, float64(st.Storms[i]))
		r.add("rx_prio_pause", labels, float64(st.RxPause[i]))
		r.add("tx_prio_pause", labels, float64(st.TxPause[i]))
		r.add("rx_prio_pause_duration", labels, float64(st.RxPaused[i]))
		r.add("tx_prio_pause_duration", labels, float64(st.TxPaused[i]))
	}
}

func (r *Readings) add(name string, labels []string, v float64) {
	r.Samples = append(r.Samples, metrics.Sample{Name: name, Labels: labels, Value: v})
}

// labels are the port's, shared by all its samples.
func (p *Port) labels() []string {
	if p.own == nil {
		p.own = []string{p.Ref.Node, p.Ref.Port}
	}
	return p.own
}

// labelled are the port's labels and one more.
func (p *Port) labelled(more string) []string { return []string{p.Ref.Node, p.Ref.Port, more} }

var (
	reasons      = asic.Reasons()
	reasonLabels = func() (all []string) {
		for _, r := range reasons {
			all = append(all, r.String())
		}
		return all
	}()
	digits, queueLabels = func() (numbers, queues [8]string) {
		for i := range numbers {
			numbers[i] = strconv.Itoa(i)
			queues[i] = "queue" + numbers[i]
		}
		return numbers, queues
	}()
)
