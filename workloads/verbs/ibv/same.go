//go:build ibv && linux && cgo

package ibv

/*
#include "rb.h"
*/
import "C"

import "github.com/rocebed/rocebed/workloads/verbs"

// What is passed to libibverbs, or taken from it, as a number must have its number. An array
// of one element has no other index than 0, so that a difference does not compile.
var (
	one [1]struct{}

	_ = one[verbs.Success-C.IBV_WC_SUCCESS]
	_ = one[verbs.LocLenErr-C.IBV_WC_LOC_LEN_ERR]
	_ = one[verbs.LocQPOpErr-C.IBV_WC_LOC_QP_OP_ERR]
	_ = one[verbs.LocEECOpErr-C.IBV_WC_LOC_EEC_OP_ERR]
	_ = one[verbs.LocProtErr-C.IBV_WC_LOC_PROT_ERR]
	_ = one[verbs.WRFlushErr-C.IBV_WC_WR_FLUSH_ERR]
	_ = one[verbs.MWBindErr-C.IBV_WC_MW_BIND_ERR]
	_ = one[verbs.BadRespErr-C.IBV_WC_BAD_RESP_ERR]
	_ = one[verbs.LocAccessErr-C.IBV_WC_LOC_ACCESS_ERR]
	_ = one[verbs.RemInvReqErr-C.IBV_WC_REM_INV_REQ_ERR]
	_ = one[verbs.RemAccessErr-C.IBV_WC_REM_ACCESS_ERR]
	_ = one[verbs.RemOpErr-C.IBV_WC_REM_OP_ERR]
	_ = one[verbs.RetryExcErr-C.IBV_WC_RETRY_EXC_ERR]
	_ = one[verbs.RNRRetryExcErr-C.IBV_WC_RNR_RETRY_EXC_ERR]
	_ = one[verbs.LocRDDViolErr-C.IBV_WC_LOC_RDD_VIOL_ERR]
	_ = one[verbs.RemInvRDReqErr-C.IBV_WC_REM_INV_RD_REQ_ERR]
	_ = one[verbs.RemAbortErr-C.IBV_WC_REM_ABORT_ERR]
	_ = one[verbs.InvEECNErr-C.IBV_WC_INV_EECN_ERR]
	_ = one[verbs.InvEECStateErr-C.IBV_WC_INV_EEC_STATE_ERR]
	_ = one[verbs.FatalErr-C.IBV_WC_FATAL_ERR]
	_ = one[verbs.RespTimeoutErr-C.IBV_WC_RESP_TIMEOUT_ERR]
	_ = one[verbs.GeneralErr-C.IBV_WC_GENERAL_ERR]

	_ = one[verbs.WCSend-C.IBV_WC_SEND]
	_ = one[verbs.WCRDMAWrite-C.IBV_WC_RDMA_WRITE]
	_ = one[verbs.WCRDMARead-C.IBV_WC_RDMA_READ]
	_ = one[verbs.WCCompSwap-C.IBV_WC_COMP_SWAP]
	_ = one[verbs.WCFetchAdd-C.IBV_WC_FETCH_ADD]
	_ = one[verbs.WCBindMW-C.IBV_WC_BIND_MW]
	_ = one[verbs.WCLocalInv-C.IBV_WC_LOCAL_INV]

	_ = one[verbs.Reset-C.IBV_QPS_RESET]
	_ = one[verbs.Init-C.IBV_QPS_INIT]
	_ = one[verbs.RTR-C.IBV_QPS_RTR]
	_ = one[verbs.RTS-C.IBV_QPS_RTS]
	_ = one[verbs.SQD-C.IBV_QPS_SQD]
	_ = one[verbs.SQE-C.IBV_QPS_SQE]
	_ = one[verbs.Err-C.IBV_QPS_ERR]

	_ = one[verbs.Fence-C.IBV_SEND_FENCE]
	_ = one[verbs.Signaled-C.IBV_SEND_SIGNALED]
	_ = one[verbs.Solicited-C.IBV_SEND_SOLICITED]
	_ = one[verbs.Inline-C.IBV_SEND_INLINE]

	_ = one[verbs.LocalWrite-C.IBV_ACCESS_LOCAL_WRITE]
	_ = one[verbs.RemoteWrite-C.IBV_ACCESS_REMOTE_WRITE]
	_ = one[verbs.RemoteRead-C.IBV_ACCESS_REMOTE_READ]
	_ = one[verbs.RemoteAtomic-C.IBV_ACCESS_REMOTE_ATOMIC]
	_ = one[verbs.MWBind-C.IBV_ACCESS_MW_BIND]
	_ = one[verbs.ZeroBased-C.IBV_ACCESS_ZERO_BASED]

	_ = one[verbs.MWType1-C.IBV_MW_TYPE_1]
	_ = one[verbs.MWType2-C.IBV_MW_TYPE_2]

	_ = one[verbs.EventCQErr-C.IBV_EVENT_CQ_ERR]
	_ = one[verbs.EventQPFatal-C.IBV_EVENT_QP_FATAL]
	_ = one[verbs.EventQPReqErr-C.IBV_EVENT_QP_REQ_ERR]
	_ = one[verbs.EventQPAccessErr-C.IBV_EVENT_QP_ACCESS_ERR]
	_ = one[verbs.EventCommEst-C.IBV_EVENT_COMM_EST]
	_ = one[verbs.EventSQDrained-C.IBV_EVENT_SQ_DRAINED]
	_ = one[verbs.EventPathMig-C.IBV_EVENT_PATH_MIG]
	_ = one[verbs.EventPathMigErr-C.IBV_EVENT_PATH_MIG_ERR]
	_ = one[verbs.EventDeviceFatal-C.IBV_EVENT_DEVICE_FATAL]
	_ = one[verbs.EventPortActive-C.IBV_EVENT_PORT_ACTIVE]
	_ = one[verbs.EventPortErr-C.IBV_EVENT_PORT_ERR]
	_ = one[verbs.EventLIDChange-C.IBV_EVENT_LID_CHANGE]
	_ = one[verbs.EventPKeyChange-C.IBV_EVENT_PKEY_CHANGE]
	_ = one[verbs.EventSMChange-C.IBV_EVENT_SM_CHANGE]
	_ = one[verbs.EventSRQErr-C.IBV_EVENT_SRQ_ERR]
	_ = one[verbs.EventSRQLimitReached-C.IBV_EVENT_SRQ_LIMIT_REACHED]
	_ = one[verbs.EventQPLastWQEReached-C.IBV_EVENT_QP_LAST_WQE_REACHED]
	_ = one[verbs.EventClientReregister-C.IBV_EVENT_CLIENT_REREGISTER]
	_ = one[verbs.EventGIDChange-C.IBV_EVENT_GID_CHANGE]
)
