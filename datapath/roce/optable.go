package roce

// Flags are an opcode's properties.
type Flags uint32

// The headers that follow the BTH, in the order in which they follow.
const (
	HasDETH Flags = 1 << iota
	HasFETH
	HasRETH
	HasAETH
	HasAtomicETH
	HasAtomicAckETH
	HasImmDt
	HasIETH
	HasCNPReserved // the CNP's 16 bytes of zeros
	extensions     = iota
)

// The rest of the properties.
const (
	HasPayload Flags = 1 << (iota + extensions) // may carry payload
	First                                       // the message's first packet of several
	Middle
	Last
	Only
	Request   // a requester sends it
	Response  // a responder sends it
	Immediate // ends a message that consumes a receive and gives it immediate data
	Invalidate
)

// Starts says that a packet begins a message, Ends that it ends one.
const (
	Starts = First | Only
	Ends   = Last | Only
)

// extLen are the extension headers' lengths in bytes, in the order of the flags.
var extLen = [extensions]uint8{DETHLen, FETHLen, RETHLen, AETHLen, AtomicETHLen, AtomicAckETHLen, ImmDtLen, IETHLen, CNPReservedLen}

// Info is what the specification says of an opcode.
type Info struct {
	Name      string
	Operation Operation
	Transport Transport
	Flags     Flags
	HeaderLen uint8             // BTH and extension headers, bytes
	offset    [extensions]uint8 // from the BTH's start; 0 where there is none
}

// Known says that the opcode is one of the constants.
func (i *Info) Known() bool { return i.Operation != OpUnknown }

// Is says that all of the flags are set.
func (i *Info) Is(f Flags) bool { return i.Flags&f == f }

// Any says that at least one of the flags is set.
func (i *Info) Any(f Flags) bool { return i.Flags&f != 0 }

// Info is the opcode's line of the table. An opcode that isn't one of the constants has a BTH and
// no extension headers; what follows is its payload.
func (o Opcode) Info() *Info { return &table[o] }

var table = build()

// line is one operation, of the transports that have it.
type line struct {
	op    uint8 // the lower five bits
	name  string
	kind  Operation
	flags Flags
}

// Lines of all connected transports, and of RC alone (9.2; what follows the BTH: 9.3).
var (
	connected = []line{
		{0x00, "SEND First", OpSend, First | Request | HasPayload},
		{0x01, "SEND Middle", OpSend, Middle | Request | HasPayload},
		{0x02, "SEND Last", OpSend, Last | Request | HasPayload},
		{0x03, "SEND Last with Immediate", OpSend, Last | Request | HasPayload | HasImmDt | Immediate},
		{0x04, "SEND Only", OpSend, Only | Request | HasPayload},
		{0x05, "SEND Only with Immediate", OpSend, Only | Request | HasPayload | HasImmDt | Immediate},
		{0x06, "RDMA WRITE First", OpRDMAWrite, First | Request | HasPayload | HasRETH},
		{0x07, "RDMA WRITE Middle", OpRDMAWrite, Middle | Request | HasPayload},
		{0x08, "RDMA WRITE Last", OpRDMAWrite, Last | Request | HasPayload},
		{0x09, "RDMA WRITE Last with Immediate", OpRDMAWrite, Last | Request | HasPayload | HasImmDt | Immediate},
		{0x0a, "RDMA WRITE Only", OpRDMAWrite, Only | Request | HasPayload | HasRETH},
		{0x0b, "RDMA WRITE Only with Immediate", OpRDMAWrite, Only | Request | HasPayload | HasRETH | HasImmDt | Immediate},
	}
	reliable = []line{
		{0x0c, "RDMA READ Request", OpRDMAReadRequest, Only | Request | HasRETH},
		{0x0d, "RDMA READ response First", OpRDMAReadResponse, First | Response | HasPayload | HasAETH},
		{0x0e, "RDMA READ response Middle", OpRDMAReadResponse, Middle | Response | HasPayload},
		{0x0f, "RDMA READ response Last", OpRDMAReadResponse, Last | Response | HasPayload | HasAETH},
		{0x10, "RDMA READ response Only", OpRDMAReadResponse, Only | Response | HasPayload | HasAETH},
		{0x11, "Acknowledge", OpAcknowledge, Only | Response | HasAETH},
		{0x12, "ATOMIC Acknowledge", OpAtomicAcknowledge, Only | Response | HasAETH | HasAtomicAckETH},
		{0x13, "CmpSwap", OpCmpSwap, Only | Request | HasAtomicETH},
		{0x14, "FetchAdd", OpFetchAdd, Only | Request | HasAtomicETH},
		{0x16, "SEND Last with Invalidate", OpSend, Last | Request | HasPayload | HasIETH | Invalidate},
		{0x17, "SEND Only with Invalidate", OpSend, Only | Request | HasPayload | HasIETH | Invalidate},
		{0x1c, "FLUSH", OpFlush, Only | Request | HasFETH | HasRETH},
		{0x1d, "ATOMIC WRITE", OpAtomicWrite, Only | Request | HasPayload | HasRETH},
	}
	datagrams = []line{
		{0x04, "SEND only", OpSend, Only | Request | HasPayload | HasDETH},
		{0x05, "SEND only with Immediate", OpSend, Only | Request | HasPayload | HasDETH | HasImmDt | Immediate},
	}
)

// selective are the lines of rocebed's own selective repeat.
var selective = []line{
	{0x06, "RDMA WRITE First", OpRDMAWrite, First | Request | HasPayload | HasRETH},
	{0x07, "RDMA WRITE Middle", OpRDMAWrite, Middle | Request | HasPayload | HasRETH},
	{0x08, "RDMA WRITE Last", OpRDMAWrite, Last | Request | HasPayload | HasRETH},
	{0x09, "RDMA WRITE Last with Immediate", OpRDMAWrite, Last | Request | HasPayload | HasRETH | HasImmDt | Immediate},
	{0x0a, "RDMA WRITE Only", OpRDMAWrite, Only | Request | HasPayload | HasRETH},
	{0x0b, "RDMA WRITE Only with Immediate", OpRDMAWrite, Only | Request | HasPayload | HasRETH | HasImmDt | Immediate},
	{0x11, "Selective Acknowledge", OpAcknowledge, Only | Response | HasAETH | HasAtomicAckETH | HasImmDt},
}

func build() (t [256]Info) {
	for i := range t {
		t[i] = Info{Transport: Opcode(i).Transport(), HeaderLen: BTHLen, Flags: HasPayload}
	}
	add := func(tr Transport, prefix string, lines ...line) {
		for _, l := range lines {
			i := Info{Name: prefix + l.name, Operation: l.kind, Transport: tr, Flags: l.flags, HeaderLen: BTHLen}
			for e, n := range extLen {
				if l.flags&(1<<e) != 0 {
					i.offset[e] = i.HeaderLen
					i.HeaderLen += n
				}
			}
			t[uint8(tr)<<5|l.op] = i
		}
	}
	add(TransportRC, "RC ", connected...)
	add(TransportRC, "RC ", reliable...)
	add(TransportUC, "UC ", connected...)
	add(TransportUD, "UD ", datagrams...)
	add(TransportManufacturer, "SR ", selective...)
	add(TransportCNP, "", line{0x01, "CNP", OpCNP, HasCNPReserved})
	return t
}
