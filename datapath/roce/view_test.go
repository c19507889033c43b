package roce

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

func TestASwitchRewritesHeadersInPlace(t *testing.T) {
	for i, p := range every() {
		frame := mustAppend(t, &p)
		v, _ := decode(t, frame)
		want := p
		if p.TTL > 1 {
			want.TTL--
		}
		if went := v.DecrementTTL(); went != (p.TTL > 1) {
			t.Errorf("TTL %d may go on: %v", p.TTL, went)
		}
		marked := v.MarkCE()
		if marked != (p.ECN() != NotECT) {
			t.Errorf("ECN %d was marked: %v", p.ECN(), marked)
		}
		if marked {
			want.TrafficClass |= 3
		}
		if i%3 == 0 {
			v.SetDSCP(uint8(i) & 63)
			want.TrafficClass = uint8(i)<<2 | want.TrafficClass&3
		}
		v.SetMACs(macA, macB)
		want.DstMAC, want.SrcMAC = macA, macB
		if v.SetPCP(6) != p.Tagged {
			t.Errorf("tagged %v", p.Tagged)
		}
		if p.Tagged {
			want.TCI = NewTCI(6, p.TCI.DEI(), p.TCI.VID())
		}
		if _, got := decode(t, frame); !same(got, want) {
			t.Errorf("rewritten to %+v\nwant %+v", got, want)
		}
		if !v.IPv4OK() || !v.ICRCOK() {
			t.Errorf("%v: checksum right %v, ICRC right %v after the rewrite", p.BTH.Opcode, v.IPv4OK(), v.ICRCOK())
		}
		if fresh := mustAppend(t, &want); !bytes.Equal(fresh, frame) {
			t.Errorf("rewritten %x\nafresh    %x", frame, fresh)
		}
	}
}

// An update keeps a checksum as right or wrong as it was, also where the sum is zero in one of its two forms.
func TestChecksumUpdatesAgreeWithAFreshSum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		var b [20]byte
		for i := range b {
			b[i] = byte(r.IntN(256) >> r.IntN(9)) // zeros often
		}
		b[0] |= 0x45 // as every header: never all zero
		b[10], b[11] = 0, 0
		old := Checksum(b[:], 0)
		from := be.Uint16(b[8:])
		to := uint16(r.Uint32())
		be.PutUint16(b[8:], to)
		if got, want := patched(old, from, to), Checksum(b[:], 0); got != want {
			t.Fatalf("%x: word %#x to %#x: %#x, want %#x", b, from, to, got, want)
		}
	}
}

func TestChecksumsOfOddLengthsAndPseudoHeaders(t *testing.T) {
	// RFC 1071's example: 00 01 f2 03 f4 f5 f6 f7 sums to ddf2.
	b := []byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}
	if got := Checksum(b, 0); got != ^uint16(0xddf2) {
		t.Errorf("%#x", got)
	}
	if got := Checksum(append(b, 0x01), 0); got != ^uint16(0xdef2) {
		t.Errorf("with an odd byte %#x", got)
	}
	long := bytes.Repeat([]byte{0xff, 0xfe, 3}, 3333)
	var sum uint64
	for i := 0; i < len(long); i++ {
		sum += uint64(long[i]) << (8 * (1 - i&1))
	}
	if got := Checksum(long, 0); got != ^fold(sum) {
		t.Errorf("%#x, want %#x", got, ^fold(sum))
	}
	// UDP over IPv4, 10.1.2.3 to 10.254.253.252, 8 bytes: 0a01+0203+0afe+fdfc + 0011 + 0008.
	if got := fold(PseudoSum(addr4A, addr4B, ProtocolUDP, 8)); got != fold(0x0a01+0x0203+0x0afe+0xfdfc+0x11+8) {
		t.Errorf("pseudo header %#x", got)
	}
	if got := fold(PseudoSum(addr6A, addr6B, ProtocolICMPv6, 70000)); got != fold(2*(0xfd00+1+2+3)+0xa+0xb+58+70000) {
		t.Errorf("pseudo header in IPv6 %#x", got)
	}
}

// carrying sets the lengths of an IPv4 frame so that UDP carries n bytes.
func carrying(n int) func(b []byte) []byte {
	return func(b []byte) []byte {
		b[17], b[39] = byte(IPv4Len+UDPLen+n), byte(UDPLen+n)
		b[24], b[25] = 0, 0
		be.PutUint16(b[24:], Checksum(b[14:34], 0))
		return b
	}
}

func TestBadFramesAreRefusedAndSaidHowFarTheyAreGood(t *testing.T) {
	p4, p6 := sample(RCRDMAWriteOnly, 9), inIPv6(sample(RCRDMAWriteOnly, 9))
	for name, c := range map[string]struct {
		p     *Packet
		spoil func(b []byte) []byte
		want  error
		kind  Kind
	}{
		"cut in Ethernet":       {&p4, func(b []byte) []byte { return b[:13] }, ErrTruncated, KindOther},
		"cut in IPv4":           {&p4, func(b []byte) []byte { return b[:30] }, ErrTruncated, KindOther},
		"cut in IPv6":           {&p6, func(b []byte) []byte { return b[:40] }, ErrTruncated, KindOther},
		"cut behind IPv4":       {&p4, func(b []byte) []byte { return b[:60] }, ErrLength, KindOther},
		"cut behind IPv6":       {&p6, func(b []byte) []byte { return b[:70] }, ErrLength, KindOther},
		"version":               {&p4, func(b []byte) []byte { b[14] = 0x65; return b }, ErrVersion, KindOther},
		"version 6":             {&p6, func(b []byte) []byte { b[14] = 0x45; return b }, ErrVersion, KindOther},
		"header length":         {&p4, func(b []byte) []byte { b[14] = 0x44; return b }, ErrLength, KindOther},
		"datagram too long":     {&p4, func(b []byte) []byte { b[39]++; return b }, ErrLength, KindIP},
		"datagram too short":    {&p4, func(b []byte) []byte { b[38], b[39] = 0, 7; return b }, ErrLength, KindIP},
		"no place for the ICRC": {&p4, carrying(BTHLen + 3), ErrTruncated, KindUDP},
		"no place for the RETH": {&p4, carrying(BTHLen + ICRCLen + 12), ErrTruncated, KindUDP},
		"no multiple of four":   {&p4, carrying(BTHLen + RETHLen + 11 + ICRCLen), ErrLength, KindUDP},
		"less UDP than IP":      {&p4, func(b []byte) []byte { b[39] -= 4; return b }, ErrLength, KindUDP},
		"pad":                   {&p4, carrying(BTHLen + RETHLen + ICRCLen), ErrPad, KindUDP},
		"BTH version":           {&p4, func(b []byte) []byte { b[43] |= 1; return b }, ErrBTHVersion, KindUDP},
		"fragment":              {&p4, func(b []byte) []byte { b[20] |= 0x20; return b }, nil, KindIP},
		"another port":          {&p4, func(b []byte) []byte { b[37]++; return b }, nil, KindUDP},
		"TCP":                   {&p4, func(b []byte) []byte { b[23] = ProtocolTCP; return b }, nil, KindIP},
		"ICMPv6":                {&p6, func(b []byte) []byte { b[20] = ProtocolICMPv6; return b }, nil, KindIP},
		"another EtherType":     {&p4, func(b []byte) []byte { b[12] = 0x88; return b }, nil, KindOther},
		"filled up":             {&p4, func(b []byte) []byte { return append(b, 1, 2, 3) }, nil, KindRoCE},
	} {
		b := c.spoil(mustAppend(t, c.p))
		var v View
		if err := v.Parse(b); !errors.Is(err, c.want) || v.Kind() != c.kind {
			t.Errorf("%s: %v, kind %d; want %v, kind %d", name, err, v.Kind(), c.want, c.kind)
		}
		if v.Kind() == KindRoCE && !v.ICRCOK() {
			t.Errorf("%s: the ICRC is wrong", name)
		}
		var q Packet
		if err := q.Decode(&v); (err == nil) != (c.kind == KindRoCE) {
			t.Errorf("%s: made a Packet of it: %v", name, err)
		}
	}
}

func TestPacketsThatAPacketHasNoPlaceForAreRefused(t *testing.T) {
	p := sample(RCRDMAWriteOnly, 9)
	b := mustAppend(t, &p)
	// Four bytes of options (no operation) between the header and UDP.
	b = append(b[:34:34], append([]byte{1, 1, 1, 1}, b[34:]...)...)
	b[14]++
	b[17] += 4
	be.PutUint16(b[24:], 0)
	be.PutUint16(b[24:], Checksum(b[14:38], 0))
	var v View
	if err := v.Parse(b); err != nil || v.Kind() != KindRoCE || !v.IPv4OK() || v.ICRCOK() {
		t.Fatalf("%v, kind %d", err, v.Kind())
	}
	if v.SetICRC(); !v.ICRCOK() || v.PSN() != p.BTH.PSN || !bytes.Equal(v.Payload(), p.Payload) {
		t.Errorf("PSN %#x, payload %x", v.PSN(), v.Payload())
	}
	if err := (&Packet{}).Decode(&v); !errors.Is(err, ErrOptions) {
		t.Errorf("%v, want %v", err, ErrOptions)
	}
	p = inIPv6(p)
	b = mustAppend(t, &p)
	copy(b[22:], addr4A[:])
	if err := v.Parse(b); err != nil {
		t.Fatal(err)
	}
	if err := (&Packet{}).Decode(&v); !errors.Is(err, ErrAddress) {
		t.Errorf("%v, want %v", err, ErrAddress)
	}
}

func TestPauseFramesAndARPDecodeToWhatWasEncoded(t *testing.T) {
	var v View
	if err := v.Parse(AppendPause(nil, macA, 0xabcd)); err != nil || v.Kind() != KindPause || v.Pause() != 0xabcd || v.Dst() != MACControl {
		t.Errorf("%v, kind %d", err, v.Kind())
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		f := PFC{Enabled: uint8(r.Uint32())}
		for i := range f.Quanta {
			f.Quanta[i] = uint16(r.Uint32())
		}
		if err := v.Parse(AppendPFC(nil, macA, &f)); err != nil || v.Kind() != KindPFC || v.PFC() != f || v.Ethernet().Src != macA {
			t.Fatalf("%v, kind %d: %+v, want %+v", err, v.Kind(), v.PFC(), f)
		}
	}
	for _, tagged := range []bool{false, true} {
		a := ARP{Operation: ARPReply, SenderMAC: macA, Sender: [4]byte{10, 0, 0, 1}, TargetMAC: macB, Target: [4]byte{10, 0, 0, 2}}
		eth := Ethernet{Dst: macB, Src: macA, Tagged: tagged, TCI: NewTCI(5, false, 7), Type: EtherTypeARP}
		if !tagged {
			eth.TCI = 0
		}
		b := PadFrame(a.Append(eth.Append(nil)), 0)
		if err := v.Parse(b); err != nil || v.Kind() != KindARP || v.ARP() != a || v.Ethernet() != eth || len(b) != MinFrameLen {
			t.Errorf("%v, kind %d: %+v, %+v", err, v.Kind(), v.ARP(), v.Ethernet())
		}
	}
}

func TestQuantaAreTimesOf512Bits(t *testing.T) {
	if d := QuantaTime(0xffff, 100e9); d != 335539*time.Nanosecond {
		t.Errorf("65535 quanta at 100 Gb/s last %v", d)
	}
	for _, rate := range []int64{1, 1e6, 10e9, 25e9, 400e9, 1 << 60} {
		for _, d := range []time.Duration{0, 1, 5, time.Microsecond, 335 * time.Microsecond, time.Hour} {
			q := QuantaFor(d, rate)
			if got := QuantaTime(q, rate); q < 0xffff && rate <= 400e9 && got < d-1 { // QuantaTime cuts off a part of a nanosecond
				t.Errorf("%d quanta for %v at %d b/s last %v", q, d, rate, got)
			}
		}
	}
	if QuantaFor(time.Hour, 400e9) != 0xffff || QuantaFor(-1, 1e9) != 0 || QuantaFor(512, 1e9) != 1 || QuantaFor(513, 1e9) != 2 {
		t.Errorf("an hour %d, before %d, 512 ns %d, 513 ns %d", QuantaFor(time.Hour, 400e9), QuantaFor(-1, 1e9), QuantaFor(512, 1e9), QuantaFor(513, 1e9))
	}
	// 1538 byte times at 10 Gb/s: a full frame of 1500 bytes with all that the line adds.
	if got := LineTime(1514, 10e9); got != 1230*time.Nanosecond || LineLen(10) != 84 {
		t.Errorf("1514 bytes take %v, 10 bytes take the place of %d", got, LineLen(10))
	}
}
