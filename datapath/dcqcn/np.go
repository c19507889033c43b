package dcqcn

import (
	"errors"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

// NPCounters count what a notification point did, the first two under mlx5's names.
type NPCounters struct {
	CNPSent    uint64 // np_cnp_sent
	ECNMarked  uint64 // np_ecn_marked_roce_packets: packets that came CE-marked
	TableFull  uint64 // marked packets whose CNP was held back because too many flows were marked at once
	Suppressed uint64 // marked packets whose flow had had its CNP within the interval
}

// NP is the notification point of a receiver: it says for which marked packets a CNP goes
// back, at most one per interval for a flow. What a flow is, its key says: a queue pair, an
// address and a queue pair, an address pair.
//
// It remembers the flows that had a CNP within the last interval, none else, and no more than
// it was made for: the memory is taken at once, and a packet costs one look at a map.
type NP[K comparable] struct {
	Counters NPCounters

	interval time.Duration
	recent   map[K]struct{} // the flows in queue
	queue    []cnp[K]       // a ring, oldest first: the order in which flows may have the next
	oldest   int
}

type cnp[K comparable] struct {
	flow K
	next loop.Time // when the flow may have the next
}

// NewNP makes a notification point that sends at most one CNP an interval for a flow, and for
// at most flows different ones an interval; those beyond go without until an interval has
// passed. An interval of 0 sends a CNP for every marked packet.
func NewNP[K comparable](interval time.Duration, flows int) (*NP[K], error) {
	if interval < 0 {
		return nil, &ParamError{"min_time_between_cnps", interval, "give the least time between CNPs of a flow, or 0"}
	}
	if flows < 1 {
		return nil, errors.New("a notification point needs room for at least one flow")
	}
	n := &NP[K]{interval: interval}
	if interval > 0 {
		n.recent = make(map[K]struct{}, flows)
		n.queue = make([]cnp[K], 0, flows)
	}
	return n, nil
}

// OnMarked takes a packet of a flow that came CE-marked, and says whether a CNP goes back now.
func (n *NP[K]) OnMarked(now loop.Time, flow K) (send bool) {
	n.Counters.ECNMarked++
	if n.interval == 0 {
		n.Counters.CNPSent++
		return true
	}
	n.forget(now)
	if _, had := n.recent[flow]; had {
		n.Counters.Suppressed++
		return false
	}
	if len(n.recent) == cap(n.queue) {
		n.Counters.TableFull++
		return false
	}
	n.recent[flow] = struct{}{}
	n.remember(cnp[K]{flow, now.Add(n.interval)})
	n.Counters.CNPSent++
	return true
}

// forget drops the flows whose interval has passed. Each was added once, so this costs a
// constant a CNP.
func (n *NP[K]) forget(now loop.Time) {
	for len(n.recent) > 0 && n.queue[n.oldest].next <= now {
		delete(n.recent, n.queue[n.oldest].flow)
		if n.oldest++; n.oldest == cap(n.queue) {
			n.oldest = 0
		}
	}
	if len(n.recent) == 0 {
		n.queue, n.oldest = n.queue[:0], 0
	}
}

// remember puts a CNP at the end of the ring.
func (n *NP[K]) remember(c cnp[K]) {
	end := n.oldest + len(n.recent) - 1
	if end >= cap(n.queue) {
		end -= cap(n.queue)
	}
	if end == len(n.queue) {
		n.queue = append(n.queue, c)
		return
	}
	n.queue[end] = c
}

// Flows is how many flows it remembers.
func (n *NP[K]) Flows() int { return len(n.recent) }
