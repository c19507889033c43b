package roce

// The lengths of the extension headers, in bytes (9.3).
const (
	DETHLen         = 8
	FETHLen         = 4
	RETHLen         = 16
	AETHLen         = 4
	AtomicETHLen    = 28
	AtomicAckETHLen = 8
	ImmDtLen        = 4
	IETHLen         = 4
	CNPReservedLen  = 16
)

// DETH is the Datagram Extended Transport Header (9.3). SrcQP has 24 bits.
type DETH struct {
	QKey  uint32
	SrcQP uint32
}

// FETH is the FLUSH Extended Transport Header (annex A19): a placement type (bits 0 to 3) and a
// selectivity level (bits 4 and 5).
type FETH uint32

// FETH's placement types and selectivity levels.
const (
	FlushGlobal      FETH = 1 << 0
	FlushPersistence FETH = 1 << 1
	FlushRange       FETH = 0 << 4
	FlushRegion      FETH = 1 << 4
)

// RETH is the RDMA Extended Transport Header (9.3). DMALen is the whole message's length, bytes.
type RETH struct {
	VA     uint64
	RKey   uint32
	DMALen uint32
}

// AETH is the ACK Extended Transport Header (9.3). MSN has 24 bits.
type AETH struct {
	Syndrome Syndrome
	MSN      uint32
}

// AtomicETH is the Atomic Extended Transport Header (9.3). FetchAdd adds SwapAdd and ignores Compare.
type AtomicETH struct {
	VA      uint64
	RKey    uint32
	SwapAdd uint64
	Compare uint64
}

func (h *DETH) put(p []byte) {
	_ = p[DETHLen-1]
	be.PutUint32(p, h.QKey)
	be.PutUint32(p[4:], h.SrcQP&0xffffff)
}

func (h *DETH) get(p []byte) {
	_ = p[DETHLen-1]
	h.QKey, h.SrcQP = be.Uint32(p), get24(p[5:])
}

func (h *RETH) put(p []byte) {
	_ = p[RETHLen-1]
	be.PutUint64(p, h.VA)
	be.PutUint32(p[8:], h.RKey)
	be.PutUint32(p[12:], h.DMALen)
}

func (h *RETH) get(p []byte) {
	_ = p[RETHLen-1]
	h.VA, h.RKey, h.DMALen = be.Uint64(p), be.Uint32(p[8:]), be.Uint32(p[12:])
}

func (h *AETH) put(p []byte) { be.PutUint32(p, uint32(h.Syndrome)<<24|h.MSN&0xffffff) }

func (h *AETH) get(p []byte) {
	v := be.Uint32(p)
	h.Syndrome, h.MSN = Syndrome(v>>24), v&0xffffff
}

func (h *AtomicETH) put(p []byte) {
	_ = p[AtomicETHLen-1]
	be.PutUint64(p, h.VA)
	be.PutUint32(p[8:], h.RKey)
	be.PutUint64(p[12:], h.SwapAdd)
	be.PutUint64(p[20:], h.Compare)
}

func (h *AtomicETH) get(p []byte) {
	_ = p[AtomicETHLen-1]
	h.VA, h.RKey, h.SwapAdd, h.Compare = be.Uint64(p), be.Uint32(p[8:]), be.Uint64(p[12:]), be.Uint64(p[20:])
}
