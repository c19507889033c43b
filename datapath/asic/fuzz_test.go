package asic

import (
	"testing"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/roce"
)

// Whatever comes from a socket, the switch doesn't panic, loses no frame uncounted, and what it sends can be read.
func FuzzFramesFromASocket(f *testing.F) {
	for _, e := range []ends{ends4, ends6} {
		b := newIPBench(f, e)
		p := roce.Packet{BTH: roce.BTH{Opcode: roce.RCRDMAWriteOnly, DestQP: 17}, PayloadLen: 64, Src: e.a, Dst: e.b, TTL: 64, SrcPort: 50000}
		raw, err := p.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
		echo := []byte{echoRequest4, 0, 0, 0, 0, 0, 0, 7}
		if !e.a.Is4() {
			echo[0] = echoRequest6
		}
		closeICMP(echo, e.a, e.own)
		f.Add(b.packet(e.a, e.own, proto(e), 64, echo).Bytes)
		f.Add(b.packet(e.a, e.b, roce.ProtocolUDP, 1, roce.AppendUDP(nil, 1, 2, 0)).Bytes)
	}
	f.Add(b6solicitation(f))
	eth := roce.Ethernet{Dst: roce.Broadcast, Src: roce.MAC{2, 9}, Type: roce.EtherTypeARP}
	ask := roce.ARP{Operation: roce.ARPRequest, SenderMAC: roce.MAC{2, 9}, Sender: ends4.a.As4(), Target: ends4.own.As4()}
	f.Add(ask.Append(eth.Append(nil)))
	f.Add(roce.AppendPause(nil, roce.MAC{2, 9}, 1000))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, e := range []ends{ends4, ends6} {
			b := newIPBench(t, e)
			f := b.pool.Get()
			f.Buf = append(f.Buf[:0], raw...)
			if f.Parse(f.Buf) != nil && len(raw) < roce.EthernetLen {
				return // no socket gives such
			}
			f.Classify(b.resolve)
			pause := f.Kind == roce.KindPFC || f.Kind == roce.KindPause
			b.give(0, f)
			b.run(ms)
			b.accounts()
			if pause && len(b.sent) > 0 {
				t.Errorf("a pause frame is answered: %+v", b.sent)
			}
			for _, s := range b.sent {
				v := new(roce.View)
				if err := v.Parse(s.bytes); s.port == 0 && err != nil {
					t.Errorf("the switch answered with what can't be read: %v, %x", err, s.bytes)
				}
			}
		}
	})
}

func b6solicitation(f *testing.F) []byte {
	b := newIPBench(f, ends6)
	dst := roce.Addr{0: 0xff, 1: 2, 11: 1, 12: 0xff, 15: ends6.own[15]}
	m := append([]byte{neighborSolicitation, 0, 0, 0, 0, 0, 0, 0}, ends6.own[:]...)
	closeICMP(m, ends6.a, dst)
	return b.packet(ends6.a, dst, roce.ProtocolICMPv6, 255, m).Bytes
}

var _ link.Receiver = (*Switch)(nil)
