package roce

// Kind is how far a frame is understood, and so which accessors of a View may be called.
type Kind uint8

// The kinds, where each from KindIP on has what the one before has.
const (
	KindOther Kind = iota // Ethernet alone
	KindARP               // for IPv4 over Ethernet
	KindPause             // 802.3x
	KindPFC               // 802.1Qbb
	KindIP                // IPv4 or IPv6, whatever it carries; fragments, and what follows extension headers, too
	KindUDP               // UDP in IP
	KindRoCE              // RoCEv2: UDP to its port, BTH and ICRC
)

// View is where the headers of a frame lie. The frame stays the caller's, and the View is valid as long
// as the frame isn't changed by others. A View may be used again for another frame.
type View struct {
	frame   []byte
	info    *Info
	l3      uint16 // where the IP header, the ARP message or the MAC control opcode begins
	l4      uint16 // where what follows the IP header begins
	bth     uint16
	payload uint16
	tail    uint32 // RoCE: where the payload ends and the pad begins
	end     uint32 // where the IP packet (of UDP: the datagram) ends; Ethernet may have filled up behind it
	kind    Kind
	v6      bool
	pad     uint8
}

// Parse finds the headers of a frame without its frame check sequence. Lengths are checked; checksums
// and the ICRC are not (IPv4OK, ICRCOK). With an error the View is of the last kind that was sound,
// so that a switch can forward a packet whose transport headers are broken.
func (v *View) Parse(frame []byte) error {
	*v = View{frame: frame}
	if len(frame) < EthernetLen {
		return ErrTruncated
	}
	at, t := EthernetLen, EtherType(be.Uint16(frame[12:]))
	if t == EtherTypeVLAN {
		if len(frame) < EthernetLen+VLANLen {
			return ErrTruncated
		}
		at, t = EthernetLen+VLANLen, EtherType(be.Uint16(frame[16:]))
	}
	v.l3 = uint16(at)
	switch p := frame[at:]; t {
	case EtherTypeIPv4:
		return v.parseIPv4(p)
	case EtherTypeIPv6:
		return v.parseIPv6(p)
	case EtherTypeARP:
		if len(p) < ARPLen {
			return ErrTruncated
		}
		if be.Uint64(p)>>16 == arpFixed>>16 {
			v.kind = KindARP
		}
	case EtherTypeMACControl:
		return v.parseControl(p)
	}
	return nil
}

// parseControl accepts pause frames to any address: 802.3x allows a station's own.
func (v *View) parseControl(p []byte) error {
	if len(p) < 2 {
		return ErrTruncated
	}
	switch be.Uint16(p) {
	case opPause:
		if len(p) < 4 {
			return ErrTruncated
		}
		v.kind = KindPause
	case opPFC:
		if len(p) < 20 {
			return ErrTruncated
		}
		v.kind = KindPFC
	}
	return nil
}

func (v *View) parseIPv4(p []byte) error {
	if len(p) < IPv4Len {
		return ErrTruncated
	}
	if p[0]>>4 != 4 {
		return ErrVersion
	}
	n, total := int(p[0]&0x0f)*4, int(be.Uint16(p[2:]))
	if n < IPv4Len || total < n || total > len(p) {
		return ErrLength
	}
	v.kind = KindIP
	v.l4, v.end = v.l3+uint16(n), uint32(v.l3)+uint32(total)
	if be.Uint16(p[6:])&0x3fff != 0 || p[9] != ProtocolUDP { // more fragments, or not the first
		return nil
	}
	return v.parseUDP(p[n:total])
}

func (v *View) parseIPv6(p []byte) error {
	if len(p) < IPv6Len {
		return ErrTruncated
	}
	if p[0]>>4 != 6 {
		return ErrVersion
	}
	total := IPv6Len + int(be.Uint16(p[4:]))
	if total > len(p) {
		return ErrLength
	}
	v.kind, v.v6 = KindIP, true
	v.l4, v.end = v.l3+IPv6Len, uint32(v.l3)+uint32(total)
	if p[6] != ProtocolUDP {
		return nil
	}
	return v.parseUDP(p[IPv6Len:total])
}

func (v *View) parseUDP(p []byte) error {
	if len(p) < UDPLen {
		return ErrTruncated
	}
	n := int(be.Uint16(p[4:]))
	if n < UDPLen || n > len(p) {
		return ErrLength
	}
	v.kind = KindUDP
	v.end = uint32(v.l4) + uint32(n)
	if be.Uint16(p[2:]) != Port {
		return nil
	}
	if n != len(p) { // which of the two lengths would say where the ICRC is?
		return ErrLength
	}
	return v.parseBTH(p[UDPLen:n])
}

func (v *View) parseBTH(p []byte) error {
	if len(p) < BTHLen+ICRCLen {
		return ErrTruncated
	}
	if p[1]&0x0f != 0 {
		return ErrBTHVersion
	}
	info := Opcode(p[0]).Info()
	carried := len(p) - int(info.HeaderLen) - ICRCLen
	if carried < 0 {
		return ErrTruncated
	}
	if carried%4 != 0 { // the pad makes it so
		return ErrLength
	}
	pad := int(p[1] >> 4 & 3)
	if pad > carried {
		return ErrPad
	}
	v.kind, v.info, v.pad = KindRoCE, info, uint8(pad)
	v.bth = v.l4 + UDPLen
	v.payload = v.bth + uint16(info.HeaderLen)
	v.tail = uint32(v.payload) + uint32(carried-pad)
	return nil
}
