package rnic

import (
	"math/bits"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// Bugs are faults of a transport that tests plant to see that they are found. No configuration sets them.
type Bugs uint64

// The bugs, each one that an RNIC or its firmware has had or could have.
const (
	BugPSNWrap         Bugs = 1 << iota // responses are compared with what is outstanding as if PSNs didn't wrap
	BugStaleAck                         // an ACK of what is acknowledged already is taken for the oldest request's
	BugDuplicateWrite                   // a WRITE that comes again is written again, over what came after it
	BugLostFence                        // a fenced request doesn't wait for READs and atomics
	BugAtomicTwice                      // an atomic that comes again is done again
	BugReadOffset                       // responses of a READ that was resumed are put where it began
	BugReplayOffset                     // a READ that is resumed is answered from its first byte on
	BugRNRNoWait                        // the requester doesn't wait after an RNR NAK
	BugAckAhead                         // ACKs speak for the packet that is expected next
	BugEarlyCompletion                  // a request completes when its last packet has left
	BugReceiveTwice                     // a SEND that comes again takes another receive
	BugShortLast                        // the last packet of a message isn't written when it is shorter than the MTU
	BugMSN                              // READs and atomics aren't counted in the MSN
	BugNAKEach                          // every packet out of sequence is answered with a NAK
	BugReadGap                          // a READ's response that was lost isn't missed
	BugDeafTimer                        // the timer isn't started anew when a part has been acknowledged
	BugUnsignaled                       // requests complete though they aren't signalled
	BugInvalidateLate                   // SEND with invalidate leaves the window open
	BugOverlap                          // selective repeat lets WRITEs to one place be written in any order
	bugs               = iota
)

var bugNames = [bugs]string{
	"off-by-one PSN wrap", "stale ACK accepted", "duplicate WRITE applied", "lost fence", "atomic replayed twice", "READ response at the wrong offset",
	"READ replayed from the wrong offset", "RNR retry without waiting", "ACK beyond what was received", "completion before the ACK", "receive consumed by a duplicate",
	"last partial packet not written", "MSN off", "NAK for every packet out of sequence", "gap in READ responses ignored", "ACK timer not restarted",
	"unsignalled request completes", "invalidation forgotten", "overlapping WRITEs out of order",
}

// AllBugs lists them.
func AllBugs() (all []Bugs) {
	for i := range bugs {
		all = append(all, 1<<i)
	}
	return all
}

// String names the lowest bug of the set.
func (b Bugs) String() string {
	if b == 0 {
		return "none"
	}
	return bugNames[bits.TrailingZeros64(uint64(b))]
}

// What the larger of the bugs do, out of the way of what is right.

func (r *requester) outstanding(psn roce.PSN) bool {
	if r.q.dev.cfg.Bugs&BugPSNWrap != 0 {
		return psn >= r.una && psn < r.high
	}
	return psn.In(r.una, r.high.Sub(r.una))
}

// takeStale acknowledges the oldest request, whatever the ACK was of.
func (r *requester) takeStale(p *roce.Packet, at loop.Time) {
	if p.BTH.Opcode == roce.RCAcknowledge && p.AETH.Syndrome.Kind() == roce.SyndromeACK && r.una.Before(r.high) && !r.oldest().responds() {
		r.advance(r.oldest().end(), at)
	}
}

// completeEarly completes a request that has just been sent, and not again later.
func (r *requester) completeEarly(w *wqe, now loop.Time) {
	if w.flags&verbs.Signaled != 0 {
		w.flags &^= verbs.Signaled
		r.q.complete(r.q.sendCQ, &verbs.WC{ID: w.id, Op: wcOpcodes[w.op]}, now, false)
	}
}

// redo executes a request again that was executed before.
func (r *responder) redo(f *link.Frame, info *roce.Info, at loop.Time) {
	p, b := &f.Packet, r.q.dev.cfg.Bugs
	switch {
	case b&BugDuplicateWrite != 0 && info.Operation == roce.OpRDMAWrite && info.Any(roce.Only) && p.PayloadLen > 0:
		if g := r.q.remote(p.RETH.RKey, p.RETH.VA, uint64(p.PayloadLen), verbs.RemoteWrite); g != nil {
			g.store(p.RETH.VA, p)
		}
	case b&BugReceiveTwice != 0 && info.Operation == roce.OpSend && info.Any(roce.Only) && r.doing == roce.OpUnknown:
		if r.take() {
			r.got = 0
			r.place(p, at)
			r.received(&verbs.WC{Op: verbs.WCRecv, ByteLen: r.got}, p.BTH.SE, at)
		}
	}
}

// again does an atomic once more.
func (e *resource) again(q *qp, p *roce.Packet) {
	if g := q.remote(p.AtomicETH.RKey, p.AtomicETH.VA, 8, verbs.RemoteAtomic); g != nil {
		b := g.bytes(p.AtomicETH.VA, 8)
		e.value = word(b)
		putWord(b, e.value+p.AtomicETH.SwapAdd)
	}
}
