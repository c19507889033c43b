package rnic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// What a device with a Tracer does besides.

// posted traces the last n requests of the queue.
func (r *requester) posted(now loop.Time, n int) {
	h := &r.q.dev.hw
	for i := r.ring.tail - uint32(n); i != r.ring.tail; i++ {
		w := r.ring.at(i)
		e := TraceEvent{QPN: r.q.num, Message: uint64(i), Bytes: int32(w.length)}
		e.At, e.Stage = now, StagePost
		h.trace.Trace(e)
		e.At, e.Stage = now.Add(h.st.Doorbell), StageDoorbell
		h.trace.Trace(e)
		e.At, e.Stage = w.ready, StageWQEFetch
		h.trace.Trace(e)
	}
}

// traced is receive with a tracer: the packet belongs to the message that its side of the queue pair is at.
func (q *qp) traced(f *link.Frame) {
	d, p, info := q.dev, &f.Packet, f.Packet.Info()
	e := TraceEvent{QPN: q.num, PSN: p.BTH.PSN, Bytes: int32(p.PayloadLen), Message: uint64(q.tx.ring.head)}
	if e.Responder = !info.Any(roce.Response); e.Responder {
		e.Message = uint64(q.rx.msn)
	}
	e.At, e.Stage = d.loop.Now(), StageArrive
	if info.Operation == roce.OpAcknowledge {
		e.Stage = StageAck
	}
	d.hw.trace.Trace(e)
	e.At, e.Stage = d.checked, StageContext
	d.hw.trace.Trace(e)
	q.receive(f)
	if p.PayloadLen > 0 {
		e.At, e.Stage = d.left, StageDMAWrite
		d.hw.trace.Trace(e)
	}
}

// completed traces that the work of a message is done at a time.
func (q *qp) completed(responder bool, message uint64, n uint32, at loop.Time) {
	h := &q.dev.hw
	h.trace.Trace(TraceEvent{At: at.Add(h.st.CQEWrite), QPN: q.num, Message: message, Bytes: int32(n), Stage: StageCQE, Responder: responder})
}
