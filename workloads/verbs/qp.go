package verbs

import "net/netip"

// QPType is a transport service.
type QPType uint8

// The transport services.
const (
	RC QPType = iota
	UC
	UD
)

// QPState is a queue pair's state.
type QPState uint8

// The states of the specification's figure 124.
const (
	Reset QPState = iota
	Init
	RTR
	RTS
	SQD
	SQE
	Err
)

// QPInit are the parameters a queue pair is created with.
type QPInit struct {
	Type          QPType
	SendCQ        CQ
	RecvCQ        CQ
	SRQ           SRQ // nil: the QP has a receive queue of its own
	MaxSendWR     int
	MaxRecvWR     int
	MaxSendSGE    int
	MaxRecvSGE    int
	MaxInlineData int
	SignalAll     bool // every send work request makes a completion
	// IgnoreCNPs makes a queue pair that no congestion notification slows down. libibverbs has no such thing: rxe's react to none
	// anyway, a NIC's as it is set up.
	IgnoreCNPs bool
}

// QPAttr are a queue pair's attributes. All times are fabric time.
type QPAttr struct {
	State           QPState
	CurState        QPState
	SQDAsyncNotify  bool
	SQDraining      bool // Query only: in SQD, and send work is still under way
	PathMTU         int  // bytes: 256, 512, 1024, 2048 or 4096
	QKey            uint32
	RQPSN           uint32 // 24 bits: the first PSN expected
	SQPSN           uint32 // 24 bits: the first PSN sent
	DestQPN         uint32
	Access          Access // what remote operations the QP accepts
	AH              AHAttr
	MaxRDAtomic     int   // READs and atomics outstanding as requester
	MaxDestRDAtomic int   // READs and atomics outstanding as responder
	MinRNRTimer     uint8 // 0…31, index into RNRDelay
	Timeout         uint8 // 0…31: local ACK timeout 4.096 µs × 2^n, 0 = none
	RetryCnt        uint8 // 0…7: retries after a timeout or a NAK; rxe takes 7 as for ever
	RNRRetry        uint8 // 0…7, 7 = for ever
}

// QPAttrMask says which attributes Modify sets.
type QPAttrMask uint32

// The attribute mask bits.
const (
	MaskState QPAttrMask = 1 << iota
	MaskAccess
	MaskQKey
	MaskAH
	MaskPathMTU
	MaskTimeout
	MaskRetryCnt
	MaskRNRRetry
	MaskRQPSN
	MaskMaxRDAtomic
	MaskMinRNRTimer
	MaskSQPSN
	MaskMaxDestRDAtomic
	MaskDestQPN
	MaskCurState       // Modify checks that the QP is in CurState
	MaskSQDAsyncNotify // make the event SQ_DRAINED when the send queue has drained in SQD
)

// GID is a RoCEv2 GID: an IPv6 address, or an IPv4 one as mapped into IPv6. Providers report
// the mapped form and take both; compare after Unmap.
type GID = netip.Addr

// AHAttr says where packets go and how they are marked.
type AHAttr struct {
	DGID         GID
	SGIDIndex    int
	HopLimit     uint8  // 0 is taken as 64; Linux puts the hop limit of its route in the header, whatever this says
	TrafficClass uint8  // the IP header's DSCP and ECN bits: 106 = DSCP 26 + ECT(0)
	FlowLabel    uint32 // 20 bits; entropy for the UDP source port where the provider uses it
}

// SRQInit are the parameters a shared receive queue is created with.
type SRQInit struct {
	MaxWR  int
	MaxSGE int
}

// Access says what a region, a window or a QP allows.
type Access uint32

// The access flags.
const (
	LocalWrite Access = 1 << iota
	RemoteWrite
	RemoteRead
	RemoteAtomic
	MWBind
	ZeroBased // addresses in the region or window count from zero
)

// MWType is a memory window's type.
type MWType uint8

// The memory window types.
const (
	MWType1 MWType = 1
	MWType2 MWType = 2
)

// MemoryKind says where memory is.
type MemoryKind uint8

// The memory kinds. GPUMemory is emulated HBM: host memory that is accounted to a GPU.
const (
	HostMemory MemoryKind = iota
	GPUMemory
)

// DeviceAttr are a device's limits.
type DeviceAttr struct {
	MaxQP, MaxQPWR, MaxSGE, MaxCQ, MaxCQE, MaxMR, MaxPD int
	MaxSRQ, MaxSRQWR, MaxSRQSGE                         int
	MaxQPRDAtomic, MaxQPInitRDAtomic                    int
	MaxMW, MaxAH                                        int
	MWType1, MWType2                                    bool
	Atomics                                             bool
	VendorID                                            uint32 // rxe: 0xffffff
	FirmwareVersion                                     string
}

// PortAttr is the state of a device's port.
type PortAttr struct {
	Active    bool
	ActiveMTU int // bytes
	MaxMTU    int // bytes
	MaxMsg    uint32
}

// AsyncEvent is an event that belongs to no work request.
type AsyncEvent struct {
	Type AsyncEventType
	QP   QP  // QP events
	SRQ  SRQ // SRQ events
	CQ   CQ  // CQ errors
}

// AsyncEventType is the kind of an asynchronous event.
type AsyncEventType uint8

// The asynchronous events.
const (
	EventCQErr AsyncEventType = iota
	EventQPFatal
	EventQPReqErr
	EventQPAccessErr
	EventCommEst
	EventSQDrained
	EventPathMig
	EventPathMigErr
	EventDeviceFatal
	EventPortActive
	EventPortErr
	EventLIDChange
	EventPKeyChange
	EventSMChange
	EventSRQErr
	EventSRQLimitReached
	EventQPLastWQEReached
	EventClientReregister
	EventGIDChange
)
