package analysis

import (
	"time"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/testbed/record"
)

// Passed is a packet at the near end of a link's direction that a fault strikes, seen before the fault did anything to it.
type Passed struct {
	At     time.Duration // fabric time
	Leaves bool          // in the struck direction; else it comes back
	packet.Facts
}

// Span is from one time to another, the latter not included.
type Span struct{ From, To time.Duration }

// Struck is a direction of a link under packet events.
type Struck struct {
	Program     *packet.Program
	Connections []packet.Connection
	Force       []Span // when the events were in force, a strike each
	// Timeouts are the workloads' local ACK timeouts, which tell what was recovered by the timer: see byTimer. A workload that isn't there has none.
	Timeouts map[string]time.Duration
}

// Recoveries finds the packets that the events dropped, by running them again over all packets that passed, in order, and what each was made good by. hits are the
// packets that the events did something to, dropped or not: as many as were counted, or times and packets don't fit together. CNPs and packets of no
// connection need no recovery and are left out. Fault, At and the workloads' time zero are the caller's to add.
func Recoveries(all []Passed, s Struck) (out []record.Recovery, hits uint64) {
	r := &replay{all: all, ends: map[packet.Key]end{}}
	for i := range s.Connections {
		c := &s.Connections[i]
		r.ends[packet.Key{Addr: c.To.Addr, QPN: c.To.QPN}] = end{c, packet.Key{Addr: c.From.Addr, QPN: c.From.QPN}, c.From.PSN, c.To.PSN}
		r.ends[packet.Key{Addr: c.From.Addr, QPN: c.From.QPN}] = end{c, packet.Key{Addr: c.To.Addr, QPN: c.To.QPN}, c.To.PSN, c.From.PSN}
	}
	for _, span := range s.Force {
		m := packet.NewMatcher(s.Program)
		for i := range s.Connections {
			m.Connect(&s.Connections[i])
		}
		passes := map[pass]int{}
		for i := range all {
			p := &all[i]
			if !p.Leaves || p.At < span.From || p.At >= span.To {
				continue
			}
			v := m.Look(&p.Facts)
			group := groupOf(p.Class())
			n := pass{keyOf(p), group, p.PSN}
			passes[n]++
			if v.Do != 0 {
				hits++
			}
			if !v.Has(packet.Drop) {
				continue
			}
			e, known := r.ends[keyOf(p)]
			if !known || group == neither {
				continue
			}
			rec := record.Recovery{
				Event: int(v.Event), Workload: e.Workload, Flow: int(e.Flow), Class: p.Class().String(), Iteration: passes[n], Lost: p.At,
			}
			base := e.answers
			if group == requests {
				base = e.requests
			}
			rec.PSN = int64(uint32(p.PSN-base) & packet.MaxPSN)
			r.recover(&rec, i, group, e.back)
			if rec.How != record.ByLater && rec.How != record.ByRNR && byTimer(s.Timeouts[e.Workload], rec.Took, rec.Told) {
				rec.How = record.ByTimeout
			}
			out = append(out, rec)
		}
	}
	return out, hits
}

// byTimer says whether what was sent again a time after it was lost had to wait for a local ACK timeout, although a NAK (or a selective ACK) had come back told after the loss, 0 if none
// had: such a NAK had no effect. A link doesn't see when the timer began, which is when the packet left its NIC. What it waited on the way and its successor did not is
// missing here, for which an eighth of the timeout is allowed; and what follows a late NAK is that one's work.
func byTimer(timeout, took, told time.Duration) bool {
	return timeout > 0 && took >= timeout-timeout/8 && took-told >= timeout/2
}

// replay is what the search for recoveries knows.
type replay struct {
	all  []Passed
	ends map[packet.Key]end
}

// end is what is known of packets to one end of a connection.
type end struct {
	*packet.Connection
	back              packet.Key
	requests, answers roce.PSN // the first PSN of requests that go there, and of answers
}

type pass struct {
	packet.Key
	group
	psn roce.PSN
}

// group is which packets of a connection make good for each other.
type group uint8

const (
	neither group = iota
	requests
	responses
	acks
	naks
)

func groupOf(c packet.Class) group {
	switch {
	case c&(packet.Send|packet.Write|packet.ReadRequest|packet.Atomic|packet.Flush) != 0:
		return requests
	case c&(packet.ReadResponse|packet.AtomicAck) != 0:
		return responses
	case c == packet.Ack:
		return acks
	case c&packet.Nak != 0:
		return naks
	}
	return neither
}

func keyOf(p *Passed) packet.Key { return packet.Key{Addr: p.Dst, QPN: p.DestQP} }

// selectiveACK is the opcode with which rocebed's responders answer what comes out of order, where recovery is selective (docs/transport.md).
const selectiveACK = 0xd1

// tells says whether a packet to the requester's end makes it go back to a PSN, and by what.
func tells(p *Passed, psn roce.PSN) string {
	if psn.Sub(p.PSN) < 0 {
		return ""
	}
	switch c := p.Class(); {
	case c == packet.NakSequence, p.RoCE && p.Opcode == selectiveACK:
		return record.ByNAK
	case c == packet.NakRNR:
		return record.ByRNR
	}
	return ""
}

// recover follows what happened after the i-th packet was dropped.
func (r *replay) recover(rec *record.Recovery, i int, g group, back packet.Key) {
	lost := &r.all[i]
	to := keyOf(lost)
	rec.How = record.Never
	how := record.ByTimeout
	again := false // of an answer: what it answered was sent again
	for j := i + 1; j < len(r.all); j++ {
		p := &r.all[j]
		k, pg := keyOf(p), groupOf(p.Class())
		since := p.At - lost.At
		switch {
		case !p.Leaves && k == back && g == requests:
			if by := tells(p, lost.PSN); by != "" && how == record.ByTimeout {
				how, rec.Told = by, since
			}
		case p.Leaves && k == to && g == requests && pg == requests && p.PSN == lost.PSN:
			rec.How, rec.Took = how, since
			return
		case !p.Leaves && k == back && g != requests && pg == requests && p.PSN.Sub(lost.PSN) <= 0:
			again = true
		case p.Leaves && k == to && g == responses && pg == responses:
			switch {
			case p.PSN == lost.PSN:
				rec.How, rec.Took = how, since
				return
			case p.PSN.Sub(lost.PSN) > 0 && !again && how == record.ByTimeout:
				how, rec.Told = record.ByImpliedNAK, since
			}
		case p.Leaves && k == to && (g == acks || g == naks) && (pg == acks || pg == responses || pg == naks) && p.PSN.Sub(lost.PSN) >= 0:
			rec.Took = since
			switch {
			case again:
				rec.How = record.ByTimeout
			default:
				rec.How = record.ByLater
			}
			return
		}
	}
}
