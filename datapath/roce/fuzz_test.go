package roce

import (
	"bytes"
	"testing"
)

// referenceICRC is the CRC bit by bit over a masked copy, as the specification describes it.
func referenceICRC(ip []byte, n int) uint32 {
	b := append(bytes.Repeat([]byte{0xff}, 8), ip...)
	m := b[8:]
	ones := []int{1, 8, 10, 11}
	if m[0]>>4 == 6 {
		m[0] |= 0x0f
		ones = []int{1, 2, 3, 7}
	}
	for _, i := range append(ones, n+6, n+7, n+8+4) {
		m[i] = 0xff
	}
	crc := ^uint32(0)
	for _, c := range b {
		crc ^= uint32(c)
		for range 8 {
			crc = crc>>1 ^ 0xedb88320&-(crc&1)
		}
	}
	return ^crc
}

// canonical is the frame of v as our own sender would have made it: nothing behind the packet, reserved
// bits and pad 0, no UDP checksum, the two other checksums right.
func canonical(v *View) []byte {
	b := bytes.Clone(v.frame[:v.end])
	ip, bth := b[v.l3:], b[v.bth:]
	n := int(v.l4 - v.l3)
	if !v.v6 {
		ip[6] &= 0x40
		ip[10], ip[11] = 0, 0
		be.PutUint16(ip[10:], Checksum(ip[:n], 0))
	}
	ip[n+6], ip[n+7] = 0, 0
	bth[4] &= 0xc0
	bth[8] &= 0x80
	switch o := v.Opcode(); {
	case o.Info().Any(HasDETH):
		bth[BTHLen+4] = 0
	case o == CNP:
		clear(bth[BTHLen : BTHLen+CNPReservedLen])
	}
	clear(b[v.tail : v.end-ICRCLen])
	c := referenceICRC(ip[:len(ip)-ICRCLen], n)
	copy(ip[len(ip)-ICRCLen:], []byte{byte(c), byte(c >> 8), byte(c >> 16), byte(c >> 24)})
	return b
}

// touch calls what a frame of its kind allows.
func touch(v *View) {
	_, _, _ = v.Kind(), v.Frame(), v.Ethernet()
	switch v.Kind() {
	case KindARP:
		_ = v.ARP()
	case KindPause:
		_ = v.Pause()
	case KindPFC:
		_ = v.PFC()
	}
	if v.Kind() >= KindIP {
		_, _, _, _, _, _, _, _ = v.IP(), v.L4(), v.DSCP(), v.ECN(), v.TTL(), v.Protocol(), v.FlowLabel(), v.Fragment()
		_, _, _ = v.SrcAddr(), v.DstAddr(), v.IPv4OK()
	}
	if v.Kind() >= KindUDP {
		_, _, _, _ = v.SrcPort(), v.DstPort(), v.UDPChecksum(), v.UDPPayload()
	}
}

func FuzzDecodeThenEncodeIsTheFrame(f *testing.F) {
	for _, p := range every() {
		f.Add(mustAppend(f, &p))
	}
	var pfc PFC
	pfc.Set(3, 9)
	f.Add(AppendPause(nil, macA, 1))
	f.Add(AppendPFC(nil, macA, &pfc))
	f.Fuzz(func(t *testing.T, frame []byte) {
		var v View
		if v.Parse(frame) == ErrTruncated && len(frame) < EthernetLen+VLANLen {
			return // not even Ethernet
		}
		touch(&v)
		var p Packet
		if err := p.Decode(&v); err != nil {
			return
		}
		if got, want := ICRC(v.IP()[:len(v.IP())-ICRCLen], int(v.l4-v.l3)), referenceICRC(v.IP()[:len(v.IP())-ICRCLen], int(v.l4-v.l3)); got != want {
			t.Fatalf("ICRC %#x, bit by bit %#x", got, want)
		}
		got, err := p.Append(nil)
		if err != nil {
			t.Fatalf("decoded, not encoded: %v", err)
		}
		if want := canonical(&v); !bytes.Equal(got, want) {
			t.Fatalf("%v\nframe   %x\nencoded %x\nwant    %x", p.BTH.Opcode, frame, got, want)
		}
		before := bytes.Clone(got)
		if err := v.Parse(got); err != nil {
			t.Fatal(err)
		}
		if v.MarkCE(); !v.IPv4OK() || !v.ICRCOK() {
			t.Fatalf("marking %x spoilt it: %x", before, got)
		}
	})
}

// FuzzEncodeThenDecodeIsThePacket builds packets of any field values.
func FuzzEncodeThenDecodeIsThePacket(f *testing.F) {
	for i, o := range known() {
		f.Add(uint8(o), uint64(i)*0x9e3779b97f4a7c15, uint64(i), []byte("payload"[:i%8]), i%2 == 0, i%3 == 0)
	}
	f.Fuzz(func(t *testing.T, opcode uint8, a, b uint64, payload []byte, v6, vlan bool) {
		if len(payload) > 9000 {
			return
		}
		p := Packet{
			BTH:     BTH{Opcode: Opcode(opcode), SE: a&1 != 0, MigReq: a&2 != 0, FECN: a&4 != 0, BECN: a&8 != 0, AckReq: a&16 != 0, PKey: uint16(b), DestQP: uint32(a>>8) & 0xffffff, PSN: PSN(b>>16) & PSNMask},
			Payload: payload, PayloadLen: len(payload),
			SrcMAC: MAC{byte(a), byte(b), 1}, DstMAC: MAC{byte(b >> 8), byte(a >> 8), 2}, Src: addr4A, Dst: addr4B,
			TrafficClass: uint8(a >> 32), TTL: uint8(b >> 32), DF: a&32 != 0, ID: uint16(a >> 40), SrcPort: uint16(b >> 40),
		}
		if v6 {
			p.Src, p.Dst, p.DF, p.ID, p.FlowLabel = addr6A, addr6B, false, 0, uint32(a>>20)&0xfffff
		}
		if vlan {
			p.Tagged, p.TCI = true, TCI(b>>48)
		}
		info := p.Info()
		set := func(f Flags, to func()) {
			if info.Any(f) {
				to()
			}
		}
		set(HasDETH, func() { p.DETH = DETH{uint32(a), uint32(b) & 0xffffff} })
		set(HasFETH, func() { p.FETH = FETH(a) })
		set(HasRETH, func() { p.RETH = RETH{a ^ b, uint32(a >> 3), uint32(b >> 3)} })
		set(HasAETH, func() { p.AETH = AETH{Syndrome(a), uint32(b>>5) & 0xffffff} })
		set(HasAtomicETH, func() { p.AtomicETH = AtomicETH{a + b, uint32(b >> 7), a, b} })
		set(HasAtomicAckETH, func() { p.AtomicAckETH = b - a })
		set(HasImmDt, func() { p.ImmDt = uint32(b >> 9) })
		set(HasIETH, func() { p.IETH = uint32(a >> 9) })
		if _, got := decode(t, mustAppend(t, &p)); !same(got, p) {
			t.Fatalf("sent %+v\ngot  %+v", p, got)
		}
	})
}
