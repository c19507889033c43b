package asic

import (
	"math/rand/v2"
	"slices"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
)

// spread is how frames are spread over ports of equal cost.
type spread struct {
	priorities uint8 // those that mode holds for
	mode       Mode
	gap        loop.Duration
	lot        rand.PCG
	flowlets   []flowlet // by flow; made when they are first asked for
}

// flowlet is where a flow goes until it is silent for a while.
type flowlet struct {
	last loop.Time
	port uint16
	used bool
}

// flowletSlots is how many flows have a slot of their own, at best: those of one slot share it.
const flowletSlots = 4096

func (s *spread) forget() { clear(s.flowlets) }

// route is the port that a frame leaves by, nil where it can't.
func (s *Switch) route(now loop.Time, f *link.Frame) *port {
	if uint(f.Dst) >= uint(len(s.hops)) {
		return nil
	}
	h := s.hops[f.Dst]
	if h < bySet {
		if p := &s.ports[h]; p.routed {
			return p
		}
		return nil
	}
	if h >= toSelf {
		return nil
	}
	t := &s.sets[h-bySet]
	n := len(t.live)
	if n == 0 {
		return nil
	}
	hash := s.hash(f.Flow)
	if s.spread.priorities&(1<<(f.Priority&7)) == 0 {
		out := &s.ports[t.live[hash*uint64(n)>>32]]
		if s.rightSeed != nil && t.live[hashOf(f.Flow, *s.rightSeed)*uint64(n)>>32] != out.index {
			out.moved++
		}
		return out
	}
	return &s.ports[s.choose(now, f, t, uint32(h-bySet), hash)]
}

// hash is 32 bits of a flow's hash and the switch's seed, by the finaliser of SplitMix64.
func (s *Switch) hash(flow uint32) uint64 { return hashOf(flow, s.hashSeed) }

func hashOf(flow uint32, seed uint64) uint64 {
	z := (uint64(flow)+1)*0x9e3779b97f4a7c15 + seed
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return (z ^ z>>31) >> 32
}

// choose is for the modes other than ECMP.
func (s *Switch) choose(now loop.Time, f *link.Frame, t *set, number uint32, hash uint64) uint16 {
	n := uint32(len(t.live))
	switch s.spread.mode {
	case SprayRound:
		t.turn++
		return t.live[t.turn%n]
	case SprayRandom:
		return t.live[(s.spread.lot.Uint64()>>32)*uint64(n)>>32]
	case Flowlet:
		if s.spread.flowlets == nil {
			s.spread.flowlets = make([]flowlet, flowletSlots)
		}
		fl := &s.spread.flowlets[(uint32(hash)^number*0x9e3779b1)%flowletSlots]
		if !fl.used || now.Sub(fl.last) > s.spread.gap || !slices.Contains(t.live, fl.port) {
			fl.port, fl.used = s.leastLoaded(now, f, t, uint32(hash*uint64(n)>>32)), true
		}
		fl.last = now
		return fl.port
	}
	t.turn++
	return s.leastLoaded(now, f, t, t.turn%n)
}

// leastLoaded is the port with least waiting; of equals the one whose line is free first, then the first from a
// place on. A port whose queue for the frame is shut is taken only when all are.
func (s *Switch) leastLoaded(now loop.Time, f *link.Frame, t *set, from uint32) uint16 {
	best, bestShut, bestQueued, bestFree := uint16(0), true, int64(1<<62), never
	n := uint32(len(t.live))
	for i := range n {
		at := t.live[(from+i)%n]
		p := &s.ports[at]
		shut := false
		if p.held|p.gates != 0 {
			shut = p.shut(now)&(1<<p.table.queueOf[f.Priority&7]) != 0
		}
		free := max(p.line.Free(), now)
		if i > 0 {
			switch {
			case shut != bestShut:
				if shut {
					continue
				}
			case p.queued != bestQueued:
				if p.queued > bestQueued {
					continue
				}
			case free >= bestFree:
				continue
			}
		}
		best, bestShut, bestQueued, bestFree = at, shut, p.queued, free
	}
	return best
}
