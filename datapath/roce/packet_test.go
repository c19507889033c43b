package roce

import (
	"bytes"
	"errors"
	"testing"
)

func TestEveryPacketDecodesToWhatWasEncoded(t *testing.T) {
	for _, p := range every() {
		frame := mustAppend(t, &p)
		if len(frame) != p.Len() {
			t.Errorf("%v: %d bytes, Len says %d", p.BTH.Opcode, len(frame), p.Len())
		}
		v, got := decode(t, frame)
		if !same(p, got) {
			t.Errorf("%v\nsent %+v\ngot  %+v", p.BTH.Opcode, p, got)
		}
		if !v.ICRCOK() || !v.IPv4OK() {
			t.Errorf("%v: ICRC right %v, checksum right %v", p.BTH.Opcode, v.ICRCOK(), v.IPv4OK())
		}
		if again := mustAppend(t, &got); !bytes.Equal(frame, again) {
			t.Errorf("%v\nfirst %x\nthen  %x", p.BTH.Opcode, frame, again)
		}
		if len(got.Payload) > 0 && &got.Payload[0] != &frame[p.HeadersLen()] {
			t.Errorf("%v: the payload was copied", p.BTH.Opcode)
		}
	}
}

func TestAPacketIsAppendedBehindWhatIsThere(t *testing.T) {
	p := sample(RCRDMAWriteOnly, 11)
	alone := mustAppend(t, &p)
	b, err := p.Append([]byte("before"))
	if err != nil || string(b[:6]) != "before" || !bytes.Equal(b[6:], alone) {
		t.Errorf("%x, %v\nwant \"before\" and %x", b, err, alone)
	}
	// A buffer's old content shows nowhere, least of all in pad and reserved bits.
	dirty := bytes.Repeat([]byte{0xff}, 200)
	cnp := NewCNP(7)
	for _, p := range []Packet{p, cnp} {
		p.Dst, p.Src = addr4A, addr4B
		clean := mustAppend(t, &p)
		if b, err := p.Append(dirty[:0]); err != nil || !bytes.Equal(b, clean) {
			t.Errorf("%v, %v\ngot  %x\nwant %x", p.BTH.Opcode, err, b, clean)
		}
	}
}

func TestPayloadsInPiecesAndWithoutBytes(t *testing.T) {
	p := inIPv6(sample(RCSendMiddle, 30))
	whole := mustAppend(t, &p)
	b, err := p.AppendHeaders(nil)
	if err != nil {
		t.Fatal(err)
	}
	b = append(append(b, p.Payload[:7]...), p.Payload[7:]...)
	if b = p.AppendTrailer(b, 0); !bytes.Equal(b, whole) {
		t.Errorf("in pieces %x\nat once %x", b, whole)
	}
	for _, p := range []Packet{inIPv6(sample(RCSendMiddle, 30)), sample(RCRDMAWriteOnly, 4), sample(RCAcknowledge, 0)} {
		whole, headers := mustAppend(t, &p), []byte(nil)
		if headers, err = p.AppendHeaders(nil); err != nil {
			t.Fatal(err)
		}
		trailer := p.AppendTrailerTo(nil, headers, p.Payload)
		if b := bytes.Join([][]byte{headers, p.Payload, trailer}, nil); !bytes.Equal(b, whole) {
			t.Errorf("in separate pieces %x\nat once %x", b, whole)
		}
	}
	p.Payload = make([]byte, p.PayloadLen)
	zeros := mustAppend(t, &p)
	p.Payload = nil
	if b, err := p.Append(bytes.Repeat([]byte{9}, 300)[:0]); err != nil || !bytes.Equal(b, zeros) {
		t.Errorf("%v: a payload that nobody looks at is sent as %x, want %x", err, b, zeros)
	}
}

func TestWhatCantBeEncodedIsAnError(t *testing.T) {
	for want, spoil := range map[Error]func(*Packet){
		ErrAddress:     func(p *Packet) { p.Dst = addr6B },
		ErrTooLong:     func(p *Packet) { p.Payload, p.PayloadLen = nil, 65535-IPv4Len-UDPLen-BTHLen-RETHLen-ICRCLen+1 },
		ErrPayloadSize: func(p *Packet) { p.PayloadLen++ },
	} {
		p := sample(RCRDMAWriteOnly, 12)
		spoil(&p)
		if b, err := p.Append([]byte("kept")); !errors.Is(err, want) || string(b) != "kept" {
			t.Errorf("got %q and %v, want %v", b, err, want)
		}
	}
	most := sample(RCRDMAWriteOnly, 12)
	most.Payload, most.PayloadLen = nil, (65535-IPv4Len-UDPLen-BTHLen-RETHLen-ICRCLen)&^3
	decode(t, mustAppend(t, &most))
	most = inIPv6(most)
	decode(t, mustAppend(t, &most))
}

func TestNothingIsAllocated(t *testing.T) {
	p := big(false)
	var (
		buf, buf2 = make([]byte, 0, 9000), make([]byte, 0, 9000)
		v         View
		q         Packet
		err       error
		ok        bool
	)
	n := testing.AllocsPerRun(100, func() {
		if buf, err = p.Append(buf[:0]); err != nil {
			return
		}
		if err = v.Parse(buf); err != nil {
			return
		}
		ok = v.ICRCOK() && v.IPv4OK() && v.MarkCE() && v.DecrementTTL()
		if err = q.Decode(&v); err != nil {
			return
		}
		buf2, err = q.Append(buf2[:0])
		buf = AppendPause(buf[:0], macA, 1)
		_ = v.Parse(buf[:20]) // and a bad one
	})
	if n != 0 || err != nil || !ok {
		t.Errorf("%v allocations, %v, %v", n, err, ok)
	}
}
