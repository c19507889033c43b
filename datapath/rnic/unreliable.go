package rnic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// unreliable takes a packet of UC. A message that lacks a packet, or can't be taken, is dropped
// silently, and its receive waits for the next (9.8.2.2).
func (r *responder) unreliable(f *link.Frame, info *roce.Info, at loop.Time) {
	p := &f.Packet
	if r.closing {
		return
	}
	count := &r.q.dev.count
	expected := p.BTH.PSN == r.epsn
	if !expected {
		count.OutOfSequence++
	}
	if info.Any(roce.Starts) {
		r.doing = roce.OpUnknown
	} else if !expected || r.doing != info.Operation {
		if r.doing = roce.OpUnknown; expected {
			count.StrayPackets++ // the rest of a message that was dropped
		}
		return
	}
	r.epsn = p.BTH.PSN.Next()
	if !r.sized(info, p.PayloadLen) {
		r.doing = roce.OpUnknown
		count.StrayPackets++
		return
	}
	r.establish()
	switch info.Operation {
	case roce.OpSend:
		r.unreliableSend(p, info, at)
	case roce.OpRDMAWrite:
		r.unreliableWrite(p, info, at)
	}
}

func (r *responder) unreliableSend(p *roce.Packet, info *roce.Info, at loop.Time) {
	if info.Any(roce.Starts) {
		if !r.take() {
			r.q.dev.count.OutOfBuffer++
			return
		}
		r.doing, r.got = roce.OpSend, 0
	}
	status, at := r.place(p, at)
	if status != verbs.Success {
		r.misfit(status, at)
		return
	}
	if info.Any(roce.Ends) {
		r.doing = roce.OpUnknown
		wc := verbs.WC{Op: verbs.WCRecv, ByteLen: r.got}
		if info.Any(roce.Immediate) {
			wc.Imm, wc.Flags = p.ImmDt, verbs.WithImm
		}
		r.received(&wc, p.BTH.SE, at)
	}
}

// misfit is a receive that can't take its message on a transport that has no NAK: it completes with
// an error, and the QP is in ERR (9.9.3.1, class E).
func (r *responder) misfit(status verbs.Status, at loop.Time) {
	r.q.dev.count.RespCQEError++
	if status == verbs.LocLenErr {
		r.q.dev.count.RespLocalLengthError++
	}
	r.received(&verbs.WC{Status: status}, true, at)
	r.q.fail(at)
}

func (r *responder) unreliableWrite(p *roce.Packet, info *roce.Info, at loop.Time) {
	q := r.q
	if info.Any(roce.Starts) {
		n := p.RETH.DMALen
		q.dev.count.RxWriteRequests++
		r.region = nil
		switch {
		case n > maxMsg:
			q.dev.count.StrayPackets++
			return
		case q.attr.Access&verbs.RemoteWrite == 0:
			q.dev.count.RespRemoteAccess++
			return
		case n > 0:
			if r.region = q.remote(p.RETH.RKey, p.RETH.VA, uint64(n), verbs.RemoteWrite); r.region == nil {
				q.dev.count.RespRemoteAccess++
				return
			}
		}
		r.doing, r.va, r.left, r.got = roce.OpRDMAWrite, p.RETH.VA, n, 0
	}
	n := uint32(p.PayloadLen)
	switch {
	case n > r.left || info.Any(roce.Ends) != (n == r.left):
		r.doing = roce.OpUnknown
		q.dev.count.StrayPackets++
		return
	case n > 0 && !r.region.live():
		r.doing = roce.OpUnknown
		q.dev.count.RespRemoteAccess++
		return
	case info.Any(roce.Immediate) && !r.take():
		r.doing = roce.OpUnknown
		q.dev.count.OutOfBuffer++
		return
	}
	if n > 0 {
		r.region.store(r.va, p)
		at = r.q.dev.land(at, r.region.place(r.va), n, r.region.mem.kind)
		r.va += uint64(n)
		r.left -= n
		r.got += n
	}
	if !info.Any(roce.Ends) {
		return
	}
	r.doing = roce.OpUnknown
	if info.Any(roce.Immediate) {
		wc := verbs.WC{Op: verbs.WCRecvRDMAWithImm, ByteLen: r.got, Imm: p.ImmDt, Flags: verbs.WithImm}
		r.received(&wc, p.BTH.SE, at)
	}
}
