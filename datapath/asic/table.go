package asic

import (
	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/link"
)

// table is a port's settings as the datapath reads them. Ports for which it comes out equal share one.
type table struct {
	dscp     link.PriorityMap
	queueOf  [8]uint8
	groupOf  [8]uint8
	frameLen int64
	limit    int64    // of all queues, for lossy frames
	sends    [8]uint8 // by group: the priorities that it pauses
	strict   uint8    // queues
	stuck    uint8
	obey     uint8
	obeyAll  bool // 802.3x
	mtu      int32
	limited  uint8   // queues with a rate of their own
	ignores  uint8   // priorities whose pauses are noted and not obeyed
	compared uint8   // queues with a right
	_        [1]byte // to whole cache lines
	watched  uint64  // DSCPs that are counted apart
	queues   [8]queueTable
	groups   [8]groupTable
	right    [8]*rightECN // of queues; nil: nobody asks
}

type queueTable struct {
	quantum       int64
	reserved      int64
	alpha         Alpha
	losslessAlpha Alpha
	kmin          int64 // above any queue where nothing is marked
	curve         dcqcn.Marking
	rate          uint64
}

// rightECN is a marking as it should be, beside the one that there is.
type rightECN struct{ is, should dcqcn.CP }

// none never marks.
var none = dcqcn.Marking{Kmin: 1 << 61, Kmax: 1 << 62, Pmax: 1}

func compileRight(is *dcqcn.Marking, r *RightECN) *rightECN {
	if r == nil {
		return nil
	}
	of := func(m *dcqcn.Marking) dcqcn.CP {
		if m == nil {
			m = &none
		}
		return dcqcn.CP{Marking: *m}
	}
	return &rightECN{of(is), of(r.ECN)}
}

// marks says whether a frame that leaves n bytes behind is marked, and whether it should be. One lot decides both.
func (r *rightECN) marks(n int64, random dcqcn.Source) (is, should bool) {
	lot := dcqcn.Fraction(random.Uint64()>>11) * 0x1p-53
	return lot < r.is.Probability(dcqcn.Bytes(n)), lot < r.should.Probability(dcqcn.Bytes(n))
}

type groupTable struct {
	lossless  bool
	alpha     Alpha
	reserved  int64
	xoff      int64
	xonOffset int64
	headroom  int64
}

// quantum is the bytes of a turn of a queue of weight 1.
const quantum = 2048

// marks says whether a frame that leaves n bytes behind is marked.
func (q *queueTable) marks(n int64, random dcqcn.Source) bool {
	cp := dcqcn.CP{Marking: q.curve, Random: random}
	return cp.Mark(dcqcn.Bytes(n))
}

// threshold is the group's XOFF with so much of the shared buffer left.
func (g *groupTable) threshold(left int64) int64 {
	if g.alpha != 0 {
		return g.alpha.of(left)
	}
	return g.xoff
}

// compile makes the table of a port.
func (s *PortSettings) compile(c *PortConfig) *table {
	t := &table{
		dscp: s.DSCP, queueOf: s.QueueOf, groupOf: s.GroupOf, stuck: s.Stuck, obey: s.PFC.Obey, obeyAll: s.PFC.ObeyPause,
		frameLen: frameLen(s.MTU), mtu: int32(s.MTU), limit: 1 << 62,
		ignores: s.PFC.Ignore, watched: s.Watched,
	}
	if s.Limit != 0 {
		t.limit = int64(s.Limit)
	}
	for prio, g := range s.GroupOf {
		t.sends[g] |= 1 << prio & s.PFC.Send
	}
	for i := range s.Queues {
		q := &s.Queues[i]
		if q.Weight == 0 {
			t.strict |= 1 << i
		}
		if q.Rate != 0 {
			t.limited |= 1 << i
		}
		t.queues[i] = queueTable{quantum: quantum * int64(q.Weight), reserved: int64(q.Reserved), alpha: q.Alpha, losslessAlpha: q.LosslessAlpha, kmin: 1 << 62, rate: uint64(q.Rate)}
		if t.right[i] = compileRight(q.ECN, q.Right); t.right[i] != nil {
			t.compared |= 1 << i
		}
		if q.ECN != nil {
			t.queues[i].curve, t.queues[i].kmin = *q.ECN, int64(q.ECN.Kmin)
		}
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		t.groups[i] = groupTable{lossless: g.Lossless, alpha: g.Alpha, reserved: int64(g.Reserved), xoff: int64(g.XOFF), xonOffset: int64(g.XONOffset), headroom: int64(s.HeadroomOf(i, c))}
	}
	return t
}

// HeadroomOf is a group's headroom in bytes, worked out where it is automatic.
func (s *PortSettings) HeadroomOf(group int, c *PortConfig) dcqcn.Bytes {
	g := &s.Groups[group]
	switch {
	case !g.Lossless:
		return 0
	case g.AutoHeadroom:
		return Headroom(c.Rate, c.Delay, s.PFC.Response, s.MTU)
	}
	return g.Headroom
}
