package asic

import (
	"math/bits"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// ignored is what a port was told by pauses that it doesn't obey, and how many frames it sent against them, by priority.
type ignored struct {
	link.Paused
	against [8]uint64
}

// limit notes a frame that goes out where queues are limited, or pauses ignored.
func (p *port) limit(now loop.Time, f *link.Frame, q uint8) {
	if p.table.limited&(1<<q) != 0 {
		n := uint64(max(f.Len, link.MinLen) + link.Overhead)
		hi, lo := bits.Mul64(n, 8e9)
		took, _ := bits.Div64(hi, lo, p.table.queues[q].rate)
		p.queues[q].next = max(p.queues[q].next, now).Add(loop.Duration(took))
	}
	if i := f.Priority & 7; p.table.ignores&(1<<i) != 0 && p.ignored != nil && p.ignored.Holds(now, i) {
		p.ignored.against[i]++
	}
}

// limitEnd is when a queue's limit lets it send; not after now where it does, or where there is none.
func (p *port) limitEnd(now loop.Time, q uint8) loop.Time {
	if p.table.limited&(1<<q) == 0 {
		return now
	}
	return p.queues[q].next
}

// ignore notes what a pause frame says of priorities that the port doesn't obey it in.
func (p *port) ignore(now loop.Time, told *roce.PFC) {
	if p.table.ignores&told.Enabled == 0 {
		return
	}
	if p.ignored == nil {
		p.ignored = &ignored{}
	}
	noted := *told
	noted.Enabled &= p.table.ignores
	p.ignored.Take(now, p.line.Rate(), &noted)
}
