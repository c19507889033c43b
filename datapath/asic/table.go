package asic

import (
	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
)

// table is a port's settings as the datapath reads them. Ports with equal settings, rate and delay
// share one.
type table struct {
	dscp     link.PriorityMap
	queueOf  [8]uint8
	groupOf  [8]uint8
	sends    [8]uint8 // by group: the priorities that it pauses
	strict   uint8    // queues
	stuck    uint8
	obey     uint8
	obeyAll  bool // 802.3x
	frameLen int64
	limit    int64 // of lossy bytes' queues together
	mtu      int
	queues   [8]queueTable
	groups   [8]groupTable
}

type queueTable struct {
	quantum       int64
	reserved      int64
	alpha         Alpha
	losslessAlpha Alpha
	kmin          int64 // above any queue where nothing is marked
	curve         dcqcn.Marking
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

// response is how long a peer may take to obey a pause frame: 802.1Q's bound at 100 Gb/s is 60 quanta
// and what its PHY takes; the devices here take none.
const response = 0 * loop.Duration(1)

// compile makes the table of a port.
func (s *PortSettings) compile(c *PortConfig) *table {
	t := &table{
		dscp: s.DSCP, queueOf: s.QueueOf, groupOf: s.GroupOf, stuck: s.Stuck, obey: s.PFC.Obey, obeyAll: s.PFC.ObeyPause,
		frameLen: frameLen(s.MTU), mtu: s.MTU, limit: 1 << 62,
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
		t.queues[i] = queueTable{quantum: quantum * int64(q.Weight), reserved: int64(q.Reserved), alpha: q.Alpha, losslessAlpha: q.LosslessAlpha, kmin: 1 << 62}
		if q.ECN != nil {
			t.queues[i].curve, t.queues[i].kmin = *q.ECN, int64(q.ECN.Kmin)
		}
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		t.groups[i] = groupTable{lossless: g.Lossless, alpha: g.Alpha, reserved: int64(g.Reserved), xoff: int64(g.XOFF), xonOffset: int64(g.XONOffset), headroom: int64(g.headroom(c, s.MTU))}
	}
	return t
}

// headroom is the group's, worked out where it is automatic.
func (g *Group) headroom(c *PortConfig, mtu int) dcqcn.Bytes {
	if !g.Lossless {
		return 0
	}
	if g.AutoHeadroom {
		return Headroom(c.Rate, c.Delay, response, mtu)
	}
	return g.Headroom
}
