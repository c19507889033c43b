package metrics

import (
	"fmt"
	"strings"
)

// elsewhere says under which name, if any, a counter that mlx5 NICs or the port counters of InfiniBand have
// is found on every backend; software NICs have some of them under their own names too. Names of mlx5:
// drivers/infiniband/hw/mlx5/counters.c, and ethtool's.
var elsewhere = []struct{ theirs, ours, how string }{
	{"packet_seq_err", "rcvd_seq_err", ""},
	{"out_of_sequence", "out_of_seq_request", ""},
	{"local_ack_timeout_err", "completer_retry_err", "which counts going back on NAKs too"},
	{"rnr_nak_retry_err", "rcvd_rnr_err", ""},
	{"out_of_buffer", "send_rnr_err", "of RC alone"},
	{"req_transport_retries_exceeded", "retry_exceeded_err", ""},
	{"req_rnr_retries_exceeded", "retry_rnr_exceeded_err", ""},
	{"np_ecn_marked_roce_packets", "ecn_marked", "counted where a switch marks; hosts on rxe count marks that arrive where nics.dcqcn is set"},
	{"np_cnp_sent", "", "hosts on rxe send congestion notifications where nics.dcqcn is set"},
	{"rp_cnp_handled", "", "hosts on rxe react to congestion notifications where nics.dcqcn is set"},
	{"rx_icrc_encapsulated", "", "rxe drops packets with a wrong ICRC uncounted; fault_hits says how many were damaged"},
	{"roce_adp_retrans", "", "no NIC here retransmits adaptively"},
	{"rx_prio3_pause", "rx_prio_pause", "with the priority as a label"},
	{"tx_prio3_pause", "tx_prio_pause", "with the priority as a label"},
	{"rx_prio3_pause_duration", "rx_prio_pause_duration", "with the priority as a label, in nanoseconds"},
	{"port_xmit_packets", "sent_pkts", ""},
	{"port_rcv_packets", "rcvd_pkts", ""},
	{"port_xmit_data", "sent_bytes", "in bytes, not in words of four"},
	{"port_rcv_data", "rcvd_bytes", "in bytes, not in words of four"},
}

// Elsewhere says what every backend has for a counter of other NICs: the metric's name, or "" where there is
// nothing, and what to know about it. ok is false for a name that isn't known.
func Elsewhere(name string) (ours, how string, ok bool) {
	for _, e := range elsewhere {
		if e.theirs == name {
			return e.ours, e.how, true
		}
	}
	return "", "", false
}

// elsewhereTable is Elsewhere as a part of the metrics page.
func elsewhereTable() string {
	var b strings.Builder
	b.WriteString("\n## Under other names\n\nWhat mlx5 NICs and port counters call it, and what every backend has for it:\n\n| there | here | |\n| --- | --- | --- |\n")
	for _, e := range elsewhere {
		ours := "–"
		if e.ours != "" {
			ours = "`" + e.ours + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.theirs, ours, e.how)
	}
	return b.String()
}
