package rnic

import (
	"fmt"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// path is where packets go and what their network headers say.
type path struct {
	addr      roce.Addr
	mac       roce.MAC
	dst       uint32 // the fabric's number of the port; loopback; link.NoDst when the address is unknown
	flow      uint32
	label     uint32
	port      uint16 // UDP's source port
	class     uint8
	hops      uint8
	priority  uint8
	base      int32 // bytes of the headers before the BTH
	selective bool
}

func (d *Device) checkAH(a *verbs.AHAttr) error {
	switch {
	case !a.DGID.IsValid():
		return fmt.Errorf("%w: no destination GID", ErrInvalid)
	case a.SGIDIndex != 0:
		return fmt.Errorf("%w: source GID index %d of a table of one", ErrInvalid, a.SGIDIndex)
	case a.DGID.Unmap().Is4() != d.cfg.Addr.Is4():
		return fmt.Errorf("%w: the source GID is %v, of another family", ErrInvalid, d.cfg.Addr)
	case a.FlowLabel > 0xfffff:
		return fmt.Errorf("%w: flow label %#x has more than 20 bits", ErrInvalid, a.FlowLabel)
	}
	return nil
}

// set makes the path of an address handle's attributes.
func (t *path) set(d *Device, a *verbs.AHAttr) {
	*t = path{addr: roce.AddrFrom(a.DGID), class: a.TrafficClass, hops: a.HopLimit, label: a.FlowLabel}
	if t.hops == 0 {
		t.hops = 64
	}
	t.base = roce.EthernetLen + roce.IPv6Len + roce.UDPLen
	if d.cfg.Addr.Is4() {
		t.base -= roce.IPv6Len - roce.IPv4Len
	}
	t.priority = d.cfg.Priorities.Of(t.class)
	t.spread(d, a.FlowLabel)
	t.resolve(d)
}

// spread makes the UDP source port of a flow label, as Linux does (rdma_flow_label_to_udp_sport).
func (t *path) spread(d *Device, label uint32) {
	t.port = uint16(label&0x3fff^label>>14) | 0xc000
	t.flow = link.FlowHash(d.cfg.Addr, t.addr, roce.ProtocolUDP, t.port, roce.Port)
}

// connect makes the source port one of two QPs' numbers, as Linux does (rdma_calc_flow_label), where
// the address handle gave no flow label.
func (t *path) connect(d *Device, local, remote uint32) {
	if t.label != 0 {
		return
	}
	v := uint64(local) * uint64(remote)
	v ^= v >> 20
	v ^= v >> 40
	t.spread(d, uint32(v&0xfffff))
}

// resolve asks where the address is. It may have moved, or come up, since the last time.
func (t *path) resolve(d *Device) {
	if t.addr == d.cfg.Addr {
		t.mac, t.dst, t.selective = d.cfg.MAC, loopback, true
		return
	}
	n, ok := d.cfg.Resolve(t.addr)
	if !ok {
		n = Neighbor{Dst: link.NoDst}
	}
	t.mac, t.dst, t.selective = n.MAC, n.Dst, n.Selective
}

// frame makes a packet of an opcode that carries n bytes to a QP on the path. What the opcode's
// extension headers say, and the payload, is for the caller to add.
func (d *Device) frame(t *path, op roce.Opcode, destQP uint32, psn roce.PSN, n int) *link.Frame {
	f := d.frames.Get()
	p := &f.Packet
	p.BTH = roce.BTH{Opcode: op, PKey: roce.DefaultPKey, DestQP: destQP, PSN: psn}
	p.PayloadLen = n
	p.SrcMAC, p.DstMAC, p.Src, p.Dst = d.cfg.MAC, t.mac, d.cfg.Addr, t.addr
	if d.faulty.astray {
		p.Src = d.faulty.Source
		d.faulty.count.Astray++
	}
	p.Tagged, p.DF, p.ID, p.FlowLabel = false, true, 0, t.label
	p.TrafficClass, p.TTL, p.SrcPort = t.class, t.hops, t.port
	f.Kind, f.Dst, f.Flow = roce.KindRoCE, t.dst, t.flow
	f.TrafficClass, f.TTL, f.Priority = t.class, t.hops, t.priority
	f.Len = t.base + int32(op.Info().HeaderLen) + int32(n+(-n&3)) + roce.ICRCLen
	return f
}
