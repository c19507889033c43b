package conformance

import "maps"

// Departure is one way in which a device does not do what the specification says.
type Departure struct {
	ID     string
	Spec   string // what the specification says, and where
	Actual string // what the device does
	Source string // what makes it do so: kernel file and function, or commit
}

// departs says whether the half's device declares a departure, and notes that a case came by it.
// The case then asserts what the departure says.
func (h *half) departs(id string) bool {
	for _, d := range h.end.Departures {
		if d.ID == id {
			h.suite.departed[id] = true
			return true
		}
	}
	return false
}

// CheckDepartures fails for each departure that an end declares and that no case has come by in any
// of the suites. It is for the end of a whole run: a device shows some of its departures as
// host 0 and others as host 1.
func CheckDepartures(t T, suites ...*Suite) {
	t.Helper()
	seen := map[string]bool{}
	for _, s := range suites {
		maps.Copy(seen, s.departed)
	}
	told := map[string]bool{}
	for _, s := range suites {
		for _, e := range s.ends {
			for _, d := range e.Departures {
				if !seen[d.ID] && !told[d.ID] {
					t.Errorf("%s: a device declares the departure %q, which no case has come by", s.provider.Name, d.ID)
					told[d.ID] = true
				}
			}
		}
	}
}

// The departures that cases know.
const (
	GRHOnEveryReceive     = "GRH flag on every receive"
	NoRequestErrEvent     = "no event QP_REQ_ERR for a responder's error"
	LongSendReceiveStatus = "statuses of a SEND longer than its receive"
	BadReceiveStatus      = "status of a receive with a bad local key"
	UDShortReceiveDropped = "datagram longer than its receive is dropped"
	NoCommEst             = "no event COMM_EST"
	WindowBoundsUnchecked = "window bounds are not checked"
	LocalErrorFlushes     = "a local error completes as a flush"
	LateReceiveNotFlushed = "a receive posted in ERR is flushed late"
	FlushNotSolicited     = "a flushed receive is no solicited event"
	SevenRetriesForEver   = "retry_cnt 7 is for ever"
	ReadsUnlimited        = "READs outstanding are not counted by the responder"
	HopLimitOfRoute       = "the route's hop limit, not the address handle's"
	SQDNotResumed         = "a send posted in SQD waits for the next post"
)

// Rxe is where the kernel's rdma_rxe departs, seen on Linux 7.3.4 (Debian trixie-backports).
// Sources without a path are in drivers/infiniband/sw/rxe.
var Rxe = []Departure{
	{GRHOnEveryReceive,
		"the GRH flag says that the buffer begins with a GRH, on UD QPs alone (11.4.2.1)",
		"it is set on RC and UC receives as well, which have no GRH",
		"rxe_resp.c do_complete sets IB_WC_GRH for every user completion"},
	{NoRequestErrEvent,
		"a responder that NAKs an invalid request tells its consumer by the affiliated error Invalid Request Local Work Queue Error (9.9.3, 11.6.3.2)",
		"the QP goes to ERR without an event; for access violations the event comes",
		"rxe_resp.c rxe_receiver: of the class C errors, only RESPST_ERR_RKEY_VIOLATION ends in an event"},
	{LongSendReceiveStatus,
		"the receive completes with Local Length Error, the requester with Remote Invalid Request Error (9.9.3)",
		"LOC_QP_OP_ERR and REM_OP_ERR",
		"rxe_resp.c send_data_in: rxe_mr.c copy_data says EINVAL, not ENOSPC, so RESPST_ERR_MALFORMED_WQE"},
	{BadReceiveStatus,
		"Local Protection Error (11.6.2)",
		"LOC_QP_OP_ERR",
		"rxe_resp.c send_data_in makes every failed copy RESPST_ERR_MALFORMED_WQE"},
	{UDShortReceiveDropped,
		"the receive completes with Local Length Error (9.9.3, 11.6.2)",
		"no completion; the receive stays posted, its first 40 bytes used up by the GRH",
		"rxe_resp.c rxe_receiver, RESPST_ERR_LENGTH on UD without an SRQ, class D"},
	{NoCommEst,
		"the first valid packet for a QP in RTR makes the affiliated event Communication Established (11.6.3.1)",
		"never",
		"no IB_EVENT_COMM_EST in rxe"},
	{WindowBoundsUnchecked,
		"access through a window is confined to its range (10.6.7.2)",
		"only the region's range is checked: a window's key opens the whole region",
		"rxe_resp.c check_rkey: mr_check_range on the region also when the key is a window's"},
	{LocalErrorFlushes,
		"the request at fault completes with its own status, those before it complete first (10.10.2.2, 11.6.2)",
		"it completes with WR_FLUSH_ERR, and so do those before it that are still under way",
		"rxe_req.c rxe_requester moves the QP to ERR, and rxe_comp.c flush_send_queue overwrites wqe->status"},
	{LateReceiveNotFlushed,
		"a receive posted to a QP in ERR completes with a flush (10.3.1.7)",
		"it stays in the queue until something runs the responder, such as the next send",
		"the provider library posts receives without entering the kernel (rdma-core providers/rxe rxe_post_recv), so nothing runs the responder"},
	{FlushNotSolicited,
		"a receive that completes with an error counts as solicited (11.4.2.2)",
		"a flushed receive does not wake a CQ that is armed for solicited completions",
		"rxe_resp.c flush_recv_wqe calls rxe_cq_post with solicited 0"},
	{SevenRetriesForEver,
		"retry_cnt counts up to seven retries; only rnr_retry knows infinity (9.9.2)",
		"retry_cnt 7 never runs out",
		"rxe_comp.c rxe_completer, COMPST_ERROR_RETRY: retry_cnt is not counted down from 7"},
	{ReadsUnlimited,
		"a responder that gets more READs and atomics than it has resources for NAKs an invalid request (9.9.3)",
		"it recycles its resources and answers all",
		"rxe_resp.c check_resource: counting is left to the requester"},
	{HopLimitOfRoute,
		"the address handle's hop limit goes into the header (11.2.2, annex 17)",
		"the hop limit of the kernel's route to the destination does, 64 by default, on every RoCE device of Linux",
		"drivers/infiniband/core/verbs.c ib_resolve_unicast_gid_dmac overwrites grh->hop_limit"},
	{SQDNotResumed,
		"back in RTS, the QP goes on with what is in its send queue (10.3.1.5)",
		"it goes on when the next request is posted",
		"rxe_qp.c rxe_qp_from_attr does not schedule the send task when the QP leaves SQD"},
}
