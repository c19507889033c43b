package rnic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// grhLen is what a UD receive holds before the payload, bytes.
const grhLen = 40

// datagram takes a packet of UD. What has the wrong Q_Key, is too long or finds no receive is dropped
// silently (9.6.1.4.1, 9.8.3.2).
func (r *responder) datagram(f *link.Frame, info *roce.Info, at loop.Time) {
	q := r.q
	p := &f.Packet
	if p.DETH.QKey != q.attr.QKey || p.PayloadLen > q.dev.mtu || info.Operation != roce.OpSend {
		q.dev.count.StrayPackets++
		return
	}
	if !r.take() {
		q.dev.count.OutOfBuffer++
		return
	}
	r.establish()
	grh := header(f)
	r.got = 0
	status, at := r.placeGRH(&grh, p, at)
	if status != verbs.Success {
		r.misfit(status, at)
		return
	}
	wc := verbs.WC{Op: verbs.WCRecv, ByteLen: r.got, SrcQPN: p.DETH.SrcQP, Flags: verbs.WithGRH}
	if info.Any(roce.Immediate) {
		wc.Imm, wc.Flags = p.ImmDt, verbs.WithGRH|verbs.WithImm
	}
	r.received(&wc, p.BTH.SE, at)
}

func (r *responder) placeGRH(grh *[grhLen]byte, p *roce.Packet, at loop.Time) (verbs.Status, loop.Time) {
	switch {
	case uint64(p.PayloadLen)+grhLen > uint64(r.recv.length):
		return verbs.LocLenErr, at
	case r.recv.bad:
		return verbs.LocProtErr, at
	}
	scatter(r.recv.sgl, 0, grh[:], nil)
	r.got = grhLen
	return r.place(p, at)
}

// header is the network header as a receive holds it: IPv6's, or IPv4's in the last 20 bytes (A17.4.5).
func header(f *link.Frame) (b [grhLen]byte) {
	p := &f.Packet
	n := roce.UDPLen + int(p.Info().HeaderLen) + p.PayloadLen + (-p.PayloadLen & 3) + roce.ICRCLen
	if p.Src.Is4() {
		ip := roce.IPv4{TOS: f.TrafficClass, ID: p.ID, DF: p.DF, TTL: f.TTL, Protocol: roce.ProtocolUDP, Src: p.Src.As4(), Dst: p.Dst.As4()}
		ip.Append(b[:grhLen-roce.IPv4Len], n)
		return b
	}
	ip := roce.IPv6{TrafficClass: f.TrafficClass, FlowLabel: p.FlowLabel, NextHeader: roce.ProtocolUDP, HopLimit: f.TTL, Src: p.Src, Dst: p.Dst}
	ip.Append(b[:0], n)
	return b
}
