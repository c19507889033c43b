package roce

// Packet is the struct form of a RoCEv2 packet. Of the extension headers those count that Opcode.Info
// names; the others are ignored, so that a Packet can be used again without clearing it.
//
// What every packet has comes first, then what is looked at in most: a frame in hand is a few cache lines.
type Packet struct {
	BTH BTH

	Src, Dst Addr // both IPv4 or both IPv6; that decides the packet's IP version
	// Payload is a reference: to the frame after Decode, to memory when a RNIC made the packet. It is nil,
	// whatever PayloadLen, where nobody looks at bytes; then zeros are sent for it.
	Payload    []byte
	PayloadLen int

	RETH  RETH
	AETH  AETH
	ImmDt uint32 // immediate data
	IETH  uint32 // the R_Key to invalidate

	SrcMAC, DstMAC MAC
	TrafficClass   uint8
	TTL            uint8 // or hop limit
	Tagged         bool  // there is an 802.1Q tag
	DF             bool  // IPv4 alone: don't fragment
	TCI            TCI
	ID             uint16 // IPv4 alone
	FlowLabel      uint32 // IPv6 alone, 20 bits
	SrcPort        uint16

	DETH         DETH
	FETH         FETH
	AtomicETH    AtomicETH
	AtomicAckETH uint64 // what the atomic operation found
}

// Info is what the specification says of the packet's opcode.
func (p *Packet) Info() *Info { return p.BTH.Opcode.Info() }

// ECN is the packet's.
func (p *Packet) ECN() ECN { return ECN(p.TrafficClass & 3) }

// DSCP is the packet's.
func (p *Packet) DSCP() uint8 { return p.TrafficClass >> 2 }

// HeadersLen is the length of all headers before the payload, Ethernet's included, in bytes.
func (p *Packet) HeadersLen() int {
	n := EthernetLen + UDPLen + int(p.Info().HeaderLen)
	if p.Tagged {
		n += VLANLen
	}
	if p.Src.Is4() {
		return n + IPv4Len
	}
	return n + IPv6Len
}

// Len is the length of the frame that Append writes, in bytes.
func (p *Packet) Len() int {
	return p.HeadersLen() + p.PayloadLen + padOf(p.PayloadLen) + ICRCLen
}

// Append writes the packet as a frame. ErrAddress, ErrTooLong and ErrPayloadSize are the errors; then b
// comes back as it was.
func (p *Packet) Append(b []byte) ([]byte, error) {
	if p.Payload != nil && len(p.Payload) != p.PayloadLen {
		return b, ErrPayloadSize
	}
	start := len(b)
	b, err := p.AppendHeaders(b)
	if err != nil {
		return b, err
	}
	if p.Payload != nil {
		b = append(b, p.Payload...)
	} else {
		var zeros []byte
		b, zeros = grow(b, p.PayloadLen)
		clear(zeros)
	}
	return p.AppendTrailer(b, start), nil
}

// AppendHeaders writes all before the payload. Who has the payload in pieces, or reads it from
// elsewhere, appends its PayloadLen bytes next, and then calls AppendTrailer.
func (p *Packet) AppendHeaders(b []byte) ([]byte, error) {
	v4 := p.Src.Is4()
	if v4 != p.Dst.Is4() {
		return b, ErrAddress
	}
	pad := padOf(p.PayloadLen)
	transport := int(p.Info().HeaderLen) + p.PayloadLen + pad + ICRCLen // what UDP carries
	most := 0xffff - UDPLen
	if v4 {
		most -= IPv4Len
	}
	if p.PayloadLen < 0 || transport > most {
		return b, ErrTooLong
	}
	eth := Ethernet{Dst: p.DstMAC, Src: p.SrcMAC, Tagged: p.Tagged, TCI: p.TCI, Type: EtherTypeIPv6}
	if v4 {
		eth.Type = EtherTypeIPv4
		b = eth.Append(b)
		ip := IPv4{TOS: p.TrafficClass, ID: p.ID, DF: p.DF, TTL: p.TTL, Protocol: ProtocolUDP, Src: p.Src.As4(), Dst: p.Dst.As4()}
		b = ip.Append(b, UDPLen+transport)
	} else {
		b = eth.Append(b)
		ip := IPv6{TrafficClass: p.TrafficClass, FlowLabel: p.FlowLabel, NextHeader: ProtocolUDP, HopLimit: p.TTL, Src: p.Src, Dst: p.Dst}
		b = ip.Append(b, UDPLen+transport)
	}
	b = AppendUDP(b, p.SrcPort, Port, transport)
	b = p.BTH.Append(b, pad)
	return p.appendExtensions(b), nil
}

// appendExtensions writes the extension headers that the opcode has.
func (p *Packet) appendExtensions(b []byte) []byte {
	info := p.Info()
	b, e := grow(b, int(info.HeaderLen)-BTHLen)
	if info.Any(HasDETH) {
		p.DETH.put(e)
		e = e[DETHLen:]
	}
	if info.Any(HasFETH) {
		be.PutUint32(e, uint32(p.FETH))
		e = e[FETHLen:]
	}
	if info.Any(HasRETH) {
		p.RETH.put(e)
		e = e[RETHLen:]
	}
	if info.Any(HasAETH) {
		p.AETH.put(e)
		e = e[AETHLen:]
	}
	if info.Any(HasAtomicETH) {
		p.AtomicETH.put(e)
		e = e[AtomicETHLen:]
	}
	if info.Any(HasAtomicAckETH) {
		be.PutUint64(e, p.AtomicAckETH)
		e = e[AtomicAckETHLen:]
	}
	if info.Any(HasImmDt) {
		be.PutUint32(e, p.ImmDt)
		e = e[ImmDtLen:]
	}
	if info.Any(HasIETH) {
		be.PutUint32(e, p.IETH)
		e = e[IETHLen:]
	}
	if info.Any(HasCNPReserved) {
		clear(e[:CNPReservedLen])
	}
	return b
}

// AppendTrailer writes pad and ICRC behind the payload of the frame that begins at start of b and
// whose headers AppendHeaders wrote.
func (p *Packet) AppendTrailer(b []byte, start int) []byte {
	pad := padOf(p.PayloadLen)
	b, t := grow(b, pad+ICRCLen)
	clear(t[:pad])
	ip, n := b[start+EthernetLen:], IPv6Len
	if p.Tagged {
		ip = ip[VLANLen:]
	}
	if p.Src.Is4() {
		n = IPv4Len
	}
	putICRC(ip, n)
	return b
}

// AppendTrailerTo writes pad and ICRC to b, for a frame whose headers, as AppendHeaders wrote them, and payload
// lie elsewhere: what sends in pieces needn't bring them together.
func (p *Packet) AppendTrailerTo(b, headers, payload []byte) []byte {
	pad := padOf(p.PayloadLen)
	b, t := grow(b, pad+ICRCLen)
	clear(t[:pad])
	ip, n := headers[EthernetLen:], IPv6Len
	if p.Tagged {
		ip = ip[VLANLen:]
	}
	if p.Src.Is4() {
		n = IPv4Len
	}
	c := icrcMore(icrcMore(ICRC(ip, n), payload), t[:pad])
	t = t[pad:]
	t[0], t[1], t[2], t[3] = byte(c), byte(c>>8), byte(c>>16), byte(c>>24)
	return b
}

// Decode makes p what the frame says; the payload stays where it is. Fields for which the frame has
// no header become zero. ErrNotRoCE, ErrOptions and ErrAddress are the errors; then p is unchanged.
// Whether checksum and ICRC are right is for IPv4OK and ICRCOK to say.
func (p *Packet) Decode(v *View) error {
	if v.kind != KindRoCE {
		return ErrNotRoCE
	}
	if !v.v6 && v.l4-v.l3 != IPv4Len {
		return ErrOptions
	}
	src, dst := v.SrcAddr(), v.DstAddr()
	if v.v6 && (src.Is4() || dst.Is4()) {
		return ErrAddress
	}
	eth := v.Ethernet()
	*p = Packet{
		DETH: v.DETH(), FETH: v.FETH(), RETH: v.RETH(), AETH: v.AETH(), AtomicETH: v.AtomicETH(), AtomicAckETH: v.AtomicAckETH(),
		ImmDt: v.ImmDt(), IETH: v.IETH(),
		Payload: v.Payload(), PayloadLen: len(v.Payload()),
		SrcMAC: eth.Src, DstMAC: eth.Dst, Tagged: eth.Tagged, TCI: eth.TCI,
		Src: src, Dst: dst, TrafficClass: v.TrafficClass(), TTL: v.TTL(), DF: v.IPv4DF(), ID: v.IPv4ID(), FlowLabel: v.FlowLabel(),
		SrcPort: v.SrcPort(),
	}
	p.BTH.get(v.frame[v.bth:])
	return nil
}

// NewCNP is the congestion notification that a notification point sends to the QP destQP of the node
// that a marked packet came from (A17.9): the BECN bit, no PSN, no payload. The caller sets DSCP,
// priority and source port as its profile has them.
func NewCNP(destQP uint32) Packet {
	return Packet{BTH: BTH{Opcode: CNP, BECN: true, PKey: DefaultPKey, DestQP: destQP}}
}
