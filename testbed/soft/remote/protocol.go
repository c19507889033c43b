package remote

import "github.com/rocebed/rocebed/workloads/verbs"

type op uint8

const (
	opAllocMemory op = iota
	opFreeMemory
	opAllocPD
	opDeallocPD
	opRegMR
	opDeregMR
	opAllocMW
	opDeallocMW
	opCreateCQ
	opDestroyCQ
	opPoll
	opNotify
	opCreateQP
	opDestroyQP
	opModify
	opQuery
	opPostSend
	opPostRecv
	opCreateSRQ
	opDestroySRQ
	opPostSRQ
	opSetLimit
	opCreateAH
	opDestroyAH
	opCloseDevice
	opOther // not verbs: what the two ends agreed on
)

// request is what the client asks. Objects are numbered by the client, from 1 on; 0 is none.
type request struct {
	Seq    uint64
	Op     op
	Device int
	ID     uint32 // the object that is spoken to
	New    uint32 // the number of what is to be made
	Memory uint32
	N, M   int
	Flag   bool
	Access verbs.Access
	Kind   uint8 // of memory, of a window
	QP     qpInit
	Attr   verbs.QPAttr
	Mask   verbs.QPAttrMask
	AH     verbs.AHAttr
	Sends  []send
	Recvs  []verbs.RecvWR
	Other  []byte
}

// qpInit is verbs.QPInit with numbers for objects.
type qpInit struct {
	Init                verbs.QPInit // with no objects in it
	SendCQ, RecvCQ, SRQ uint32
}

// send is verbs.SendWR with numbers for objects.
type send struct {
	WR     verbs.SendWR // with no objects in it
	Inline []byte       // what an inline one carries, as it was when it was posted
	AH     uint32
	Bind   bool
	MW, MR uint32
	Addr   uint64
	Length uint64
	Access verbs.Access
}

// answer is what the server says: to a request, or, with Seq 0, by itself.
type answer struct {
	Seq    uint64
	Failed bool
	Err    string
	Posted int
	Num    uint32
	LKey   uint32
	RKey   uint32
	Addr   uint64
	Attr   verbs.QPAttr
	WCs    []verbs.WC
	States []qpState   // of queue pairs whose state may have changed by itself
	Keys   []windowKey // of windows that have a new one
	Other  []byte

	// What comes by itself: an event of a CQ, or an asynchronous event.
	CQ     uint32
	Async  bool
	Device int
	Type   verbs.AsyncEventType
	Object uint32
}

type windowKey struct {
	ID, RKey uint32
}

type qpState struct {
	ID    uint32
	State verbs.QPState
}

// About is what a device says of itself when it is opened.
type About struct {
	Name string
	Attr verbs.DeviceAttr
	Port verbs.PortAttr
	GIDs []verbs.GID
}
