package verbs

import (
	"fmt"
	"strings"
)

func name[T ~uint8](names []string, v T, kind string) string {
	if int(v) < len(names) && names[v] != "" {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", kind, uint8(v))
}

// String writes the transport service: "RC".
func (t QPType) String() string { return name([]string{RC: "RC", UC: "UC", UD: "UD"}, t, "QPType") }

// String writes the state as libibverbs does, without its prefix: "RTS".
func (s QPState) String() string {
	return name([]string{Reset: "RESET", Init: "INIT", RTR: "RTR", RTS: "RTS", SQD: "SQD", SQE: "SQE", Err: "ERR"}, s, "QPState")
}

// String writes the opcode as libibverbs does, without its prefix: "RDMA_WRITE".
func (o Opcode) String() string {
	return name([]string{
		OpSend:              "SEND",
		OpSendWithImm:       "SEND_WITH_IMM",
		OpSendWithInv:       "SEND_WITH_INV",
		OpRDMAWrite:         "RDMA_WRITE",
		OpRDMAWriteWithImm:  "RDMA_WRITE_WITH_IMM",
		OpRDMARead:          "RDMA_READ",
		OpAtomicCmpAndSwp:   "ATOMIC_CMP_AND_SWP",
		OpAtomicFetchAndAdd: "ATOMIC_FETCH_AND_ADD",
		OpBindMW:            "BIND_MW",
		OpLocalInv:          "LOCAL_INV",
	}, o, "Opcode")
}

// String writes the opcode as libibverbs does, without its prefix: "RECV_RDMA_WITH_IMM".
func (o WCOpcode) String() string {
	return name([]string{
		WCSend:            "SEND",
		WCRDMAWrite:       "RDMA_WRITE",
		WCRDMARead:        "RDMA_READ",
		WCCompSwap:        "COMP_SWAP",
		WCFetchAdd:        "FETCH_ADD",
		WCBindMW:          "BIND_MW",
		WCLocalInv:        "LOCAL_INV",
		WCRecv:            "RECV",
		WCRecvRDMAWithImm: "RECV_RDMA_WITH_IMM",
	}, o, "WCOpcode")
}

// String writes the status as libibverbs does, without its prefix: "RETRY_EXC_ERR".
func (s Status) String() string {
	return name([]string{
		Success:        "SUCCESS",
		LocLenErr:      "LOC_LEN_ERR",
		LocQPOpErr:     "LOC_QP_OP_ERR",
		LocEECOpErr:    "LOC_EEC_OP_ERR",
		LocProtErr:     "LOC_PROT_ERR",
		WRFlushErr:     "WR_FLUSH_ERR",
		MWBindErr:      "MW_BIND_ERR",
		BadRespErr:     "BAD_RESP_ERR",
		LocAccessErr:   "LOC_ACCESS_ERR",
		RemInvReqErr:   "REM_INV_REQ_ERR",
		RemAccessErr:   "REM_ACCESS_ERR",
		RemOpErr:       "REM_OP_ERR",
		RetryExcErr:    "RETRY_EXC_ERR",
		RNRRetryExcErr: "RNR_RETRY_EXC_ERR",
		LocRDDViolErr:  "LOC_RDD_VIOL_ERR",
		RemInvRDReqErr: "REM_INV_RD_REQ_ERR",
		RemAbortErr:    "REM_ABORT_ERR",
		InvEECNErr:     "INV_EECN_ERR",
		InvEECStateErr: "INV_EEC_STATE_ERR",
		FatalErr:       "FATAL_ERR",
		RespTimeoutErr: "RESP_TIMEOUT_ERR",
		GeneralErr:     "GENERAL_ERR",
	}, s, "Status")
}

// String writes the event as libibverbs does, without its prefix: "QP_FATAL".
func (e AsyncEventType) String() string {
	return name([]string{
		EventCQErr:            "CQ_ERR",
		EventQPFatal:          "QP_FATAL",
		EventQPReqErr:         "QP_REQ_ERR",
		EventQPAccessErr:      "QP_ACCESS_ERR",
		EventCommEst:          "COMM_EST",
		EventSQDrained:        "SQ_DRAINED",
		EventPathMig:          "PATH_MIG",
		EventPathMigErr:       "PATH_MIG_ERR",
		EventDeviceFatal:      "DEVICE_FATAL",
		EventPortActive:       "PORT_ACTIVE",
		EventPortErr:          "PORT_ERR",
		EventLIDChange:        "LID_CHANGE",
		EventPKeyChange:       "PKEY_CHANGE",
		EventSMChange:         "SM_CHANGE",
		EventSRQErr:           "SRQ_ERR",
		EventSRQLimitReached:  "SRQ_LIMIT_REACHED",
		EventQPLastWQEReached: "QP_LAST_WQE_REACHED",
		EventClientReregister: "CLIENT_REREGISTER",
		EventGIDChange:        "GID_CHANGE",
	}, e, "AsyncEventType")
}

// String writes the memory kind: "host" or "gpu".
func (k MemoryKind) String() string {
	return name([]string{HostMemory: "host", GPUMemory: "gpu"}, k, "MemoryKind")
}

func flags[T ~uint8 | ~uint32](names []string, v T) string {
	if v == 0 {
		return "0"
	}
	var set []string
	for i, n := range names {
		if v&(1<<i) != 0 {
			set = append(set, n)
			v &^= 1 << i
		}
	}
	if v != 0 {
		set = append(set, fmt.Sprintf("%#x", uint32(v)))
	}
	return strings.Join(set, "|")
}

// String writes the set flags: "LOCAL_WRITE|REMOTE_READ", or "0".
func (a Access) String() string {
	return flags([]string{"LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC", "MW_BIND", "ZERO_BASED"}, a)
}

// String writes the set flags: "SIGNALED|INLINE", or "0".
func (f SendFlags) String() string {
	return flags([]string{"FENCE", "SIGNALED", "SOLICITED", "INLINE"}, f)
}

// String writes the set flags: "GRH|WITH_IMM", or "0".
func (f WCFlags) String() string { return flags([]string{"WITH_IMM", "WITH_INV", "GRH"}, f) }

// String writes the attributes' names: "STATE|TIMEOUT", or "0".
func (m QPAttrMask) String() string {
	return flags([]string{
		"STATE", "ACCESS_FLAGS", "QKEY", "AV", "PATH_MTU", "TIMEOUT", "RETRY_CNT", "RNR_RETRY",
		"RQ_PSN", "MAX_QP_RD_ATOMIC", "MIN_RNR_TIMER", "SQ_PSN", "MAX_DEST_RD_ATOMIC", "DEST_QPN",
		"CUR_STATE", "EN_SQD_ASYNC_NOTIFY",
	}, m)
}
