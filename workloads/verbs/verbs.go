// Package verbs is the RDMA API that workloads are written to: libibverbs' objects, names
// and semantics, made asynchronous.
//
// Everything belongs to one host's loop: calls are made on it and callbacks arrive on it.
// Calls that may block in a real provider (open, register, create, modify, query, destroy)
// complete by callback; posting and polling don't block. Providers: ibv (libibverbs) and
// the software RNIC. What any provider must do is pinned by the conformance suite.
//
// An object is dead from the moment its Destroy (Dereg, Dealloc) is called: posting to it
// fails, polling it finds nothing. When the call fails it is alive again.
package verbs

import "github.com/rocebed/rocebed/datapath/loop"

// Device is an opened RDMA device with one port.
type Device interface {
	Name() string
	// Loop is the loop on which every call is made and every callback arrives.
	Loop() loop.Loop
	// Attr and Port are what the device said when it was opened.
	Attr() DeviceAttr
	Port() PortAttr
	// GIDs is the port's GID table by index; unused entries are zero.
	GIDs() []GID
	// AllocMemory returns zeroed memory that the device can be given: page-aligned, outside the Go heap.
	AllocMemory(size int, kind MemoryKind) (Memory, error)
	AllocPD(done func(PD, error))
	// CreateCQ makes a completion queue of at least depth entries. onEvent runs when a completion
	// arrives after ReqNotify; it should poll until empty and call ReqNotify again.
	CreateCQ(depth int, onEvent func(CQ), done func(CQ, error))
	// OnAsync sets the handler of asynchronous events (QP fatal, SRQ limit reached, port down…).
	OnAsync(func(AsyncEvent))
	// Close destroys what is left of the device's objects, youngest first, then closes it.
	// Memory that was not freed is freed: nothing may touch its Bytes after that.
	Close(done func(error))
}

// Memory is a range that memory regions are registered on.
type Memory interface {
	Addr() uint64 // virtual address, as used in SGEs and as a remote address
	Len() int     // bytes
	// Bytes is the memory itself; the device writes to it behind Go's back. It is invalid after Free.
	Bytes() []byte
	Kind() MemoryKind
	Free() error
}

// PD is a protection domain.
type PD interface {
	RegMR(mem Memory, off, length int, access Access, done func(MR, error))
	AllocMW(kind MWType, done func(MW, error))
	CreateQP(init QPInit, done func(QP, error))
	CreateSRQ(init SRQInit, done func(SRQ, error))
	CreateAH(attr AHAttr, done func(AH, error))
	Dealloc(done func(error))
}

// MR is a memory region.
type MR interface {
	LKey() uint32
	RKey() uint32
	Addr() uint64
	Len() int
	Memory() Memory
	Dereg(done func(error))
}

// MW is a memory window. RKey changes when it is bound.
type MW interface {
	RKey() uint32
	Dealloc(done func(error))
}

// CQ is a completion queue.
type CQ interface {
	// Poll fills wcs and returns how many completions it took.
	Poll(wcs []WC) int
	// ReqNotify asks for one event at the next completion, or the next solicited or failed one.
	ReqNotify(solicitedOnly bool) error
	Destroy(done func(error))
}

// QP is a queue pair.
type QP interface {
	Num() uint32
	Type() QPType
	// State is the last state that this side knows: set by Modify, and by errors seen on a CQ or as an event.
	State() QPState
	Modify(attr QPAttr, mask QPAttrMask, done func(error))
	Query(done func(QPAttr, error))
	// PostSend posts in order. On an error, *PostError says how many were taken. The slices
	// may be used again when it returns. Without any it rings the doorbell alone: the device
	// looks at what its send queue has.
	PostSend(wrs ...SendWR) error
	PostRecv(wrs ...RecvWR) error
	Destroy(done func(error))
}

// SRQ is a shared receive queue.
type SRQ interface {
	PostRecv(wrs ...RecvWR) error
	// SetLimit arms the limit event: it fires once when fewer than limit receives are left.
	SetLimit(limit int, done func(error))
	Destroy(done func(error))
}

// AH is an address handle: where a UD send goes.
type AH interface {
	Destroy(done func(error))
}

// PostError is returned by PostSend and PostRecv.
type PostError struct {
	Posted int // work requests taken before the one that failed
	Err    error
}

func (e *PostError) Error() string { return e.Err.Error() }
func (e *PostError) Unwrap() error { return e.Err }
