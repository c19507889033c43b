package roce

import "testing"

// At a payload of 4096 bytes, the largest path MTU:
//
//	go test -run '^$' -bench . ./datapath/roce

func big(v6 bool) Packet {
	p := sample(RCRDMAWriteFirst, 170) // ECN-capable
	p.PayloadLen = 4096
	p.Payload = make([]byte, p.PayloadLen)
	if v6 {
		p = inIPv6(p)
	}
	return p
}

func families(b *testing.B, each func(b *testing.B, p Packet)) {
	for _, v6 := range []bool{false, true} {
		p := big(v6)
		b.Run(map[bool]string{false: "IPv4", true: "IPv6"}[v6], func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(p.PayloadLen))
			each(b, p)
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	families(b, func(b *testing.B, p Packet) {
		buf := make([]byte, 0, p.Len())
		for b.Loop() {
			buf, _ = p.Append(buf[:0])
		}
	})
}

// BenchmarkEncodeHeaders is what a packet costs besides its payload and its ICRC.
func BenchmarkEncodeHeaders(b *testing.B) {
	families(b, func(b *testing.B, p Packet) {
		buf := make([]byte, 0, p.Len())
		for b.Loop() {
			buf, _ = p.AppendHeaders(buf[:0])
		}
	})
}

func BenchmarkParse(b *testing.B) {
	families(b, func(b *testing.B, p Packet) {
		frame := mustAppend(b, &p)
		var v View
		for b.Loop() {
			_ = v.Parse(frame)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	families(b, func(b *testing.B, p Packet) {
		frame := mustAppend(b, &p)
		var (
			v View
			q Packet
		)
		for b.Loop() {
			_ = v.Parse(frame)
			_ = q.Decode(&v)
		}
	})
}

func BenchmarkICRC(b *testing.B) {
	families(b, func(b *testing.B, p Packet) {
		frame := mustAppend(b, &p)
		var v View
		if err := v.Parse(frame); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if !v.ICRCOK() {
				b.Fatal("wrong")
			}
		}
	})
}

// BenchmarkForward is what a switch does to a packet's bytes: parse, TTL, CE, addresses.
func BenchmarkForward(b *testing.B) {
	families(b, func(b *testing.B, p Packet) {
		frame := mustAppend(b, &p)
		var v View
		for b.Loop() {
			_ = v.Parse(frame)
			v.SetMACs(macB, macA)
			v.MarkCE()
			if !v.DecrementTTL() {
				v.frame[v.l3+7+uint16(bit(!v.v6, 1))] = 64
			}
		}
	})
}
