package torture

import (
	"encoding/binary"
	"math/rand/v2"
	"sort"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// op is one send work request, with all that must come of it.
type op struct {
	id       int
	kind     verbs.Opcode
	flags    verbs.SendFlags
	length   int
	local    []span // in the requester's memory: where from, or where to
	remote   int    // offset in the responder's memory
	window   int    // through this window of the responder's; −1: its region
	imm      uint32
	add      uint64 // or what is compared
	swap     uint64
	first    int // position of its first PSN
	psns     int
	recv     int          // the receive that it takes; −1: none
	data     []byte       // what it carries, or what its READ or atomic returns
	bad      verbs.Status // what must become of it; Success for all but the last of a poisoned script
	badRecv  verbs.Status // and of the receive it takes
	spoil    func(*verbs.SendWR)
	lateness int // microseconds after the one before it is taken care of
}

// span is a range of a host's memory.
type span struct{ off, n int }

// recv is a receive work request of the responder's.
type recv struct {
	list   []span
	length int
	got    *op
}

// script is what one host asks of the other.
type script struct {
	ops   []*op
	recvs []*recv
	ends  []int // positions after each message, ascending
}

// done is how many messages end before a position.
func (s *script) done(pos int) int { return sort.SearchInts(s.ends, pos+1) }

// of is the index of the message that a position belongs to.
func (s *script) of(pos int) int { return sort.SearchInts(s.ends, pos+1) }

// layout of a host's memory: a source that nobody changes, a target for the peer's requests, and
// behind them what each READ and each receive has for itself.
const (
	sourceLen = 4096
	windows   = 2
	guard     = 3
)

// writer writes both scripts. It keeps the memory of both hosts as it must be in the end.
type writer struct {
	p     *plan
	rng   *rand.Rand
	begin [2][]byte // as it is in the beginning
	want  [2][]byte
}

func newWriter(p *plan) *writer {
	w := &writer{p: p, rng: p.rng}
	for i := range w.want {
		w.begin[i] = p.noise(nil, i, sourceLen+p.target)
		w.want[i] = append([]byte(nil), w.begin[i]...)
	}
	return w
}

// noise appends what a host's memory is in the beginning from len(b) on: at least n bytes, in eights.
func (p *plan) noise(b []byte, host, n int) []byte {
	for ; n > 0; n -= 8 {
		b = binary.LittleEndian.AppendUint64(b, p.word(host, len(b)/8))
	}
	return b
}

// word is eight bytes of a host's memory as it is in the beginning.
func (p *plan) word(host, i int) uint64 {
	seed := p.seed*2 + uint64(host) + uint64(i+1)*0x9e3779b97f4a7c15
	z := (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// byteOf is a byte of a stream that phantom memory holds: stream 1 + i is what host i's memory is in the beginning.
func (p *plan) byteOf(stream, off uint64) byte {
	if stream == 0 || stream > 2 {
		return 0
	}
	return byte(p.word(int(stream-1), int(off/8)) >> (off % 8 * 8))
}

// room adds n bytes to a host's memory, guards around them.
func (w *writer) room(host, n int) span {
	was := len(w.want[host])
	off := was + guard + w.rng.IntN(5)
	w.begin[host] = w.p.noise(w.begin[host], host, off+n+guard-was)
	w.want[host] = append(w.want[host], w.begin[host][was:]...)
	return span{off, n}
}

// pieces cuts n bytes of room into a list.
func (w *writer) pieces(host, n int) []span {
	k := 1
	if w.rng.IntN(3) == 0 {
		k = 1 + w.rng.IntN(4)
	}
	var list []span
	for left := k; left > 0; left-- {
		part := n
		if left > 1 {
			part = w.rng.IntN(n + 1)
		}
		n -= part
		list = append(list, w.room(host, part))
	}
	return list
}

func (w *writer) size() int {
	mtu, rng := w.p.mtu, w.rng
	if w.p.kind == verbs.UD {
		return pick(rng, 0, 1, rng.IntN(200), rng.IntN(1000))
	}
	if w.p.target > 4096 && rng.IntN(2) == 0 {
		return rng.IntN(w.p.target / 2)
	}
	switch rng.IntN(8) {
	case 0:
		return rng.IntN(4)
	case 1, 2:
		return max(0, mtu*(1+rng.IntN(4))+rng.IntN(3)-1)
	case 3:
		return rng.IntN(w.p.target / 2)
	}
	return rng.IntN(3 * mtu)
}

func get(b []byte, list []span) (out []byte) {
	for _, s := range list {
		out = append(out, b[s.off:s.off+s.n]...)
	}
	return out
}

func put(b []byte, list []span, data []byte) {
	for _, s := range list {
		data = data[copy(b[s.off:s.off+s.n], data):]
	}
}

// write writes the script of one host's requests.
func (w *writer) write(from int) *script {
	s := &script{}
	d := &drafter{writer: w, from: from, to: 1 - from, s: s}
	for i := range w.p.messages[from] {
		o := d.draft()
		o.id = i
		d.place(o)
		if w.rng.IntN(10) == 0 {
			o.lateness = w.rng.IntN(30)
		}
		s.ops = append(s.ops, o)
	}
	if n := len(s.ops); n > 0 {
		s.ops[n-1].flags |= verbs.Signaled // it says that all are done
	}
	if w.p.poison && from == 0 {
		o := d.poisoned()
		o.id = len(s.ops)
		s.ops = append(s.ops, o)
	}
	return s
}
