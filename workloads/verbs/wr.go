package verbs

// Opcode is what a send work request does.
type Opcode uint8

// The send opcodes.
const (
	OpSend Opcode = iota
	OpSendWithImm
	OpSendWithInv
	OpRDMAWrite
	OpRDMAWriteWithImm
	OpRDMARead
	OpAtomicCmpAndSwp
	OpAtomicFetchAndAdd
	OpBindMW
	OpLocalInv
)

// SendFlags modify a send work request.
type SendFlags uint8

// The send flags.
const (
	Fence     SendFlags = 1 << iota // wait for earlier READs and atomics
	Signaled                        // make a completion even if the QP signals selectively
	Solicited                       // the receiver's completion is solicited
	Inline                          // copy the payload at post time; SGE keys are ignored
)

// SGE is one piece of a scatter-gather list.
type SGE struct {
	Addr   uint64
	Length uint32
	LKey   uint32
}

// SendWR is a send work request.
type SendWR struct {
	ID         uint64
	Op         Opcode
	Flags      SendFlags
	SGL        []SGE
	RemoteAddr uint64 // WRITE, READ, atomics
	RKey       uint32 // WRITE, READ, atomics
	Imm        uint32 // with immediate, host order
	InvRKey    uint32 // SendWithInv, LocalInv
	CompareAdd uint64 // CmpAndSwp: compare; FetchAndAdd: the addend
	Swap       uint64 // CmpAndSwp
	AH         AH     // UD
	RemoteQPN  uint32 // UD
	RemoteQKey uint32 // UD
	Bind       *BindMW
}

// BindMW are the parameters of OpBindMW.
type BindMW struct {
	MW     MW
	MR     MR
	Addr   uint64
	Length uint64
	Access Access
}

// RecvWR is a receive work request.
type RecvWR struct {
	ID  uint64
	SGL []SGE
}

// WC is a work completion. When Status isn't Success, only ID, Status, QPN and VendorErr are valid.
type WC struct {
	ID        uint64
	Status    Status
	Op        WCOpcode
	VendorErr uint32
	ByteLen   uint32
	Imm       uint32 // valid if Flags has WithImm
	InvRKey   uint32 // valid if Flags has WithInv
	QPN       uint32 // local QP number
	SrcQPN    uint32 // UD: the sender's QP number
	Flags     WCFlags
}

// WCFlags say which fields of a completion are valid.
type WCFlags uint8

// The completion flags.
const (
	WithImm WCFlags = 1 << iota
	WithInv
	WithGRH // UD: the first 40 bytes of the buffer hold the GRH
)

// WCOpcode is what completed.
type WCOpcode uint8

// The completion opcodes.
const (
	WCSend WCOpcode = iota
	WCRDMAWrite
	WCRDMARead
	WCCompSwap
	WCFetchAdd
	WCBindMW
	WCLocalInv
	WCRecv
	WCRecvRDMAWithImm
)

// Status is a completion's outcome, in libibverbs' order.
type Status uint8

// The completion statuses.
const (
	Success Status = iota
	LocLenErr
	LocQPOpErr
	LocEECOpErr
	LocProtErr
	WRFlushErr
	MWBindErr
	BadRespErr
	LocAccessErr
	RemInvReqErr
	RemAccessErr
	RemOpErr
	RetryExcErr
	RNRRetryExcErr
	LocRDDViolErr
	RemInvRDReqErr
	RemAbortErr
	InvEECNErr
	InvEECStateErr
	FatalErr
	RespTimeoutErr
	GeneralErr
)
