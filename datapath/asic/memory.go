package asic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
)

// memory is the packet memory. Every waiting frame is on one account: a lossless one on its ingress group's, a
// lossy one on its egress queue's. What an account holds up to its reserve is its own, what is
// beyond is of the shared buffer, and a group's headroom is its own again.
type memory struct {
	sw       *Switch
	shared   int64 // size of the shared buffer
	used     int64 // of the shared buffer
	total    int64 // bytes of all waiting frames
	high     int64 // the most that total was
	paused   []pausing
	resumeAt int64 // with used down to this, one of paused may resume
}

// group is an ingress priority group's account.
type group struct {
	held  int64 // lossless bytes, headroom apart
	head  int64 // lossless bytes in headroom
	lossy int64 // bytes that are on their queues' accounts
	xoff  bool
	groupCounters
}

// pausing is a group whose XOFF is in force.
type pausing struct {
	port  *port
	group uint8
}

// A frame's tag, while it waits, is its group and whether it is on the group's account.
const tagLossless = 8

// admit takes a frame that must wait for queue q of out on an account, or drops it.
func (m *memory) admit(now loop.Time, f *link.Frame, in, out *port, q uint8) bool {
	gi := in.table.groupOf[f.Priority&7]
	g, gt := &in.groups[gi], &in.table.groups[gi]
	n := int64(f.Len)
	left := max(m.shared-m.used, 0)
	f.Tag = gi
	if gt.lossless {
		f.Tag |= tagLossless
		if a := out.table.queues[q].losslessAlpha; a != 0 && out.queues[q].frames.Bytes()+n > a.of(left) {
			out.dropQueued(f, q, DropEgress)
			return false
		}
		if !m.admitLossless(now, n, in, gi, left) {
			g.headroomDrops++
			m.sw.drop(f, in, DropHeadroom)
			return false
		}
	} else {
		qu, qt := &out.queues[q], &out.table.queues[q]
		over := beyond(qu.lossy+n, qt.reserved)
		grows := over - beyond(qu.lossy, qt.reserved)
		if over > 0 && over > qt.alpha.of(left) || grows > left || out.queued+n > out.table.limit {
			out.dropQueued(f, q, DropEgress)
			return false
		}
		if gt.alpha != 0 && g.lossy+n > gt.alpha.of(left) {
			m.sw.drop(f, in, DropIngress)
			return false
		}
		qu.lossy += n
		g.lossy += n
		m.used += grows
	}
	m.total += n
	m.high = max(m.high, m.total)
	g.high = max(g.high, g.held+g.head+g.lossy)
	return true
}

// admitLossless puts n bytes on a group's account: below its threshold, or else in its headroom. It
// pauses the group's priorities where the threshold is reached.
func (m *memory) admitLossless(now loop.Time, n int64, in *port, gi uint8, left int64) bool {
	g, gt := &in.groups[gi], &in.table.groups[gi]
	over := beyond(g.held+n, gt.reserved)
	grows := over - beyond(g.held, gt.reserved)
	switch {
	case over <= gt.threshold(left) && grows <= left:
		g.held += n
		m.used += grows
	case g.head+n <= gt.headroom:
		g.head += n
		g.headHigh = max(g.headHigh, g.head)
	default:
		m.xoff(now, in, gi)
		return false
	}
	if g.head > 0 || over >= gt.threshold(max(m.shared-m.used, 0)) {
		m.xoff(now, in, gi)
	}
	return true
}

// release takes a frame off its account as it leaves queue q of out.
func (m *memory) release(now loop.Time, f *link.Frame, out *port, q uint8) {
	n := int64(f.Len)
	in := &m.sw.ports[f.Port]
	gi := f.Tag & 7
	g := &in.groups[gi]
	m.total -= n
	if f.Tag&tagLossless == 0 {
		qu, reserved := &out.queues[q], out.table.queues[q].reserved
		m.used -= beyond(qu.lossy, reserved) - beyond(qu.lossy-n, reserved)
		qu.lossy -= n
		g.lossy -= n
	} else {
		h := min(g.head, n)
		g.head -= h
		n -= h
		reserved := in.table.groups[gi].reserved
		m.used -= beyond(g.held, reserved) - beyond(g.held-n, reserved)
		g.held -= n
		if g.xoff {
			m.resumeAt = max(m.resumeAt, m.resumeLevel(in, gi))
		}
	}
	if m.used <= m.resumeAt {
		m.sw.resume(now)
	}
}

// recount works out anew what accounts hold of the shared buffer, after their reserves have changed.
func (m *memory) recount() {
	m.used = 0
	for i := range m.sw.ports {
		p := &m.sw.ports[i]
		for j := range p.queues {
			m.used += beyond(p.queues[j].lossy, p.table.queues[j].reserved)
			m.used += beyond(p.groups[j].held, p.table.groups[j].reserved)
		}
	}
}

// beyond is what n bytes are beyond a reserve.
func beyond(n, reserved int64) int64 { return max(n-reserved, 0) }
