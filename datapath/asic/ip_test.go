package asic

import (
	"bytes"
	"testing"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// ends are the addresses of a test: a host at port 0, one at port 1, and the switch's own at port 0.
type ends struct{ a, b, own, other roce.Addr }

var (
	ends4 = ends{roce.Addr4([4]byte{10, 0, 0, 1}), roce.Addr4([4]byte{10, 0, 1, 1}), roce.Addr4([4]byte{10, 0, 0, 0}), roce.Addr4([4]byte{10, 0, 1, 0})}
	ends6 = ends{a6(1, 1), a6(2, 1), a6(1, 0), a6(2, 0)}
)

func a6(net, host byte) roce.Addr { return roce.Addr{0: 0xfd, 1: 0x52, 7: net, 15: host} }

// newIPBench is a bench that knows the addresses of ends.
func newIPBench(t testing.TB, e ends) *bench {
	b := newBench(t, 3, 100*gig, func(c *Config) {
		c.Ports[0].Addr, c.Ports[1].Addr = e.own, e.other
		c.Resolve = func(a roce.Addr) uint32 {
			switch a {
			case e.a:
				return 0
			case e.b:
				return 1
			case e.own:
				return selfNo
			case e.other:
				return selfNo + 1
			}
			return link.NoDst
		}
	})
	return b
}

// packet makes a frame in byte form: payload in an IP header from src to dst.
func (b *bench) packet(src, dst roce.Addr, proto, ttl uint8, payload []byte) *link.Frame {
	eth := roce.Ethernet{Dst: roce.MAC{2, 0, 0, 0, 1, 0}, Src: roce.MAC{2, 0, 0, 0, 2, 0}, Type: roce.EtherTypeIPv6}
	var raw []byte
	if dst.Is4() {
		eth.Type = roce.EtherTypeIPv4
		ip := roce.IPv4{TOS: 26<<2 | 2, TTL: ttl, Protocol: proto, Src: src.As4(), Dst: dst.As4()}
		raw = ip.Append(eth.Append(nil), len(payload))
	} else {
		ip := roce.IPv6{TrafficClass: 26<<2 | 2, NextHeader: proto, HopLimit: ttl, Src: src, Dst: dst}
		raw = ip.Append(eth.Append(nil), len(payload))
	}
	return b.wire(append(raw, payload...))
}

// wire makes a frame of what came from a socket.
func (b *bench) wire(raw []byte) *link.Frame {
	f := b.pool.Get()
	f.Buf = append(f.Buf[:0], roce.PadFrame(raw, 0)...)
	if err := f.Parse(f.Buf); err != nil {
		b.t.Fatal(err)
	}
	f.Classify(b.resolve)
	return f
}

// view reads what was sent last.
func (b *bench) view(port int) *roce.View {
	b.t.Helper()
	if len(b.sent) == 0 || b.sent[len(b.sent)-1].port != port {
		b.t.Fatalf("sent %+v, want something by port %d", b.sent, port)
	}
	v := new(roce.View)
	if err := v.Parse(b.sent[len(b.sent)-1].bytes); err != nil {
		b.t.Fatal(err)
	}
	if v.Kind() >= roce.KindIP && !v.IPv4OK() {
		b.t.Error("the IPv4 checksum is wrong")
	}
	return v
}

// checkICMP checks a message's checksum and gives the message.
func checkICMP(t *testing.T, v *roce.View) []byte {
	t.Helper()
	m, sum := v.L4(), uint64(0)
	if v.IsIPv6() {
		sum = roce.PseudoSum(v.SrcAddr(), v.DstAddr(), roce.ProtocolICMPv6, len(m))
	}
	if roce.Checksum(m, sum) != 0 {
		t.Errorf("the checksum of %x is wrong", m)
	}
	return m
}

func proto(e ends) uint8 {
	if e.a.Is4() {
		return roce.ProtocolICMP
	}
	return roce.ProtocolICMPv6
}

func both(t *testing.T, test func(t *testing.T, e ends)) {
	t.Run("ipv4", func(t *testing.T) { test(t, ends4) })
	t.Run("ipv6", func(t *testing.T) { test(t, ends6) })
}

func TestOrdinaryIPIsForwardedWithTheNextHopsAddressesAndOneLessTTL(t *testing.T) {
	both(t, func(t *testing.T, e ends) {
		b := newIPBench(t, e)
		payload := []byte("some TCP that nobody here reads")
		b.give(0, b.packet(e.a, e.b, roce.ProtocolTCP, 64, payload))
		v := b.view(1)
		eth := v.Ethernet()
		if eth.Dst != b.config[1].PeerMAC || eth.Src != b.config[1].MAC || v.TTL() != 63 || v.TrafficClass() != 26<<2|2 ||
			v.SrcAddr() != e.a || v.DstAddr() != e.b || !bytes.Equal(v.L4(), payload) {
			t.Errorf("%v", v.Frame())
		}
		b.accounts()
	})
}

func TestRoCEInBytesIsMarkedInBytesAndItsICRCStaysRight(t *testing.T) {
	for _, e := range []ends{ends4, ends6} {
		b := newIPBench(t, e)
		n := b.Settings()
		n.Port.Queues[3].ECN = new(dcqcn.Marking)
		if err := b.Apply(n); err != nil {
			t.Fatal(err)
		}
		p := roce.Packet{BTH: roce.BTH{Opcode: roce.RCRDMAWriteMiddle, DestQP: 17, PSN: 5}, PayloadLen: 1024, Src: e.a, Dst: e.b, TTL: 64, TrafficClass: 26<<2 | 2, SrcPort: 50000}
		raw, err := p.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			b.give(0, b.wire(append([]byte(nil), raw...)))
		}
		b.run(ms)
		marked := 0
		for _, s := range b.sent {
			v := new(roce.View)
			if err := v.Parse(s.bytes); err != nil || !v.ICRCOK() || !v.IPv4OK() || v.TTL() != 63 {
				t.Errorf("%v: ICRC %v, IPv4 %v", err, v.ICRCOK(), v.IPv4OK())
			}
			if v.ECN() == roce.CE {
				marked++
			}
		}
		if marked != 1 {
			t.Errorf("%d of %d marked in the bytes", marked, len(b.sent))
		}
	}
}

func TestTheSwitchAnswersPingToAnyOfItsAddresses(t *testing.T) {
	both(t, func(t *testing.T, e ends) {
		for _, dst := range []roce.Addr{e.own, e.other} {
			b := newIPBench(t, e)
			kind, reply := byte(echoRequest4), byte(echoReply4)
			if !e.a.Is4() {
				kind, reply = echoRequest6, echoReply6
			}
			m := append([]byte{kind, 0, 0, 0, 0x12, 0x34, 0, 7}, "odd number of bytes"...)
			closeICMP(m, e.a, dst)
			b.give(0, b.packet(e.a, dst, proto(e), 64, m))
			v := b.view(0)
			got := checkICMP(t, v)
			if v.SrcAddr() != dst || v.DstAddr() != e.a || got[0] != reply || !bytes.Equal(got[4:], m[4:]) || v.Ethernet().Dst != b.config[0].PeerMAC {
				t.Errorf("%x", v.Frame())
			}
			b.accounts()
			m[2] ^= 1
			b.give(0, b.packet(e.a, dst, proto(e), 64, m))
			if len(b.sent) != 1 || b.Stats(0).Drops[DropOther] != 1 {
				t.Error("a request with a wrong checksum is answered")
			}
		}
	})
}

func TestWhatCanNotGoOnIsSaidToItsSender(t *testing.T) {
	both(t, func(t *testing.T, e ends) {
		nobody, far := e.b, e.b
		nobody[15]++
		udp := append(roce.AppendUDP(nil, 33434, 33435, 1300), make([]byte, 1300)...)
		for _, c := range []struct {
			name   string
			dst    roce.Addr
			ttl    uint8
			mtu    int
			t4, c4 byte
			t6, c6 byte
			why    Reason
		}{
			{"TTL", far, 1, 9000, 11, 0, 3, 0, DropTTL},
			{"no route", nobody, 64, 9000, 3, 0, 1, 0, DropNoRoute},
			{"too long", far, 64, 1300, 3, 4, 2, 0, DropMTU},
		} {
			b := newIPBench(t, e)
			n := b.Settings()
			n.Port.MTU = c.mtu
			if err := b.Apply(n); err != nil {
				t.Fatal(err)
			}
			f := b.packet(e.a, c.dst, roce.ProtocolUDP, c.ttl, udp)
			sent := append([]byte(nil), f.View.IP()...)
			b.give(0, f)
			v := b.view(0)
			m := checkICMP(t, v)
			kind, code, most := c.t4, c.c4, 576
			if !e.a.Is4() {
				kind, code, most = c.t6, c.c6, 1280
			}
			if m[0] != kind || m[1] != code || v.TrafficClass() != 26<<2 || v.SrcAddr() != e.own || v.DstAddr() != e.a || v.TTL() != 64 {
				t.Errorf("%s: %x", c.name, v.Frame()[:60])
			}
			if len(v.IP()) > most || len(v.IP()) < most-8 || !bytes.Equal(m[8:], sent[:len(m)-8]) {
				t.Errorf("%s: %d bytes, of which %d are quoted, not as sent", c.name, len(v.IP()), len(m)-8)
			}
			if c.why == DropMTU && int(be.Uint16(m[6:])) != c.mtu {
				t.Errorf("%s: the MTU told is %d", c.name, be.Uint16(m[6:]))
			}
			if total := b.Stats(0).Drops[c.why] + b.Stats(1).Drops[c.why]; total != 1 {
				t.Errorf("%s: %d drops", c.name, total)
			}
			b.accounts()
		}
	})
}

func TestNobodyIsToldOfErrorsOfErrorsOrOfMulticast(t *testing.T) {
	both(t, func(t *testing.T, e ends) {
		b := newIPBench(t, e)
		failed := byte(11)
		group := roce.Addr4([4]byte{224, 0, 0, 251})
		if !e.a.Is4() {
			failed, group = 3, roce.Addr{0: 0xff, 1: 2, 15: 0xfb}
		}
		b.give(0, b.packet(e.a, e.b, proto(e), 1, []byte{failed, 0, 0, 0, 0, 0, 0, 0}))
		b.give(0, b.packet(e.a, group, roce.ProtocolUDP, 1, roce.AppendUDP(nil, 1, 2, 0)))
		b.give(0, b.packet(e.a, group, roce.ProtocolUDP, 64, roce.AppendUDP(nil, 1, 2, 0)))
		if n := b.Stats(0).Drops[DropOther]; n != 2 {
			t.Errorf("%d of two multicast packets were found not to be forwarded", n)
		}
		b.give(0, b.packet(roce.Addr{}, e.b, roce.ProtocolUDP, 1, roce.AppendUDP(nil, 1, 2, 0)))
		if len(b.sent) != 0 {
			t.Errorf("sent %+v", b.sent)
		}
		b.accounts()
	})
}

func TestErrorsAreLimitedToABurstAndARate(t *testing.T) {
	b := newIPBench(t, ends4)
	expire := func(n int) {
		for range n {
			b.give(0, b.packet(ends4.a, ends4.b, roce.ProtocolUDP, 1, roce.AppendUDP(nil, 1, 2, 0)))
		}
	}
	b.run(10 * ms)
	expire(200)
	b.run(20 * ms)
	if n := len(b.sent); n != errorBurst {
		t.Errorf("%d errors in a burst, want %d", n, errorBurst)
	}
	b.sent = nil
	for i := range 2000 {
		b.at(20*ms+loop.Duration(i)*us, func() { expire(1) })
	}
	b.run(30 * ms)
	if n := len(b.sent); n < errorBurst+195 || n > errorBurst+201 {
		t.Errorf("%d errors in 2 ms, want %d and one every %v", n, errorBurst, errorEvery)
	}
}

func TestARPForThePortsOwnAddressIsAnswered(t *testing.T) {
	b := newIPBench(t, ends4)
	ask := func(target roce.Addr) {
		eth := roce.Ethernet{Dst: roce.Broadcast, Src: roce.MAC{2, 9}, Type: roce.EtherTypeARP}
		r := roce.ARP{Operation: roce.ARPRequest, SenderMAC: roce.MAC{2, 9}, Sender: ends4.a.As4(), Target: target.As4()}
		b.give(0, b.wire(r.Append(eth.Append(nil))))
	}
	ask(ends4.own)
	v := b.view(0)
	want := roce.ARP{Operation: roce.ARPReply, SenderMAC: b.config[0].MAC, Sender: ends4.own.As4(), TargetMAC: roce.MAC{2, 9}, Target: ends4.a.As4()}
	if v.Kind() != roce.KindARP || v.ARP() != want || v.Dst() != want.TargetMAC || len(v.Frame()) != roce.MinFrameLen {
		t.Errorf("%x", v.Frame())
	}
	ask(ends4.other)
	if len(b.sent) != 1 {
		t.Error("another port's address is answered for")
	}
	b.accounts()
}

func TestNeighbourSolicitationsForThePortsAddressesAreAnswered(t *testing.T) {
	for _, local := range []bool{false, true} {
		for _, src := range []roce.Addr{ends6.a, {}} {
			b := newIPBench(t, ends6)
			target := ends6.own
			if local {
				target = linkLocal(b.config[0].MAC)
			}
			dst := roce.Addr{0: 0xff, 1: 2, 11: 1, 12: 0xff, 13: target[13], 14: target[14], 15: target[15]}
			m := append([]byte{neighborSolicitation, 0, 0, 0, 0, 0, 0, 0}, target[:]...)
			closeICMP(m, src, dst)
			b.give(0, b.packet(src, dst, roce.ProtocolICMPv6, 255, m))
			v := b.view(0)
			got := checkICMP(t, v)
			mac := b.config[0].MAC
			wantDst, wantFlags := src, byte(0xe0)
			if src == (roce.Addr{}) {
				wantDst, wantFlags = roce.Addr{0: 0xff, 1: 2, 15: 1}, 0xa0
			}
			if got[0] != neighborAdvertisement || got[4] != wantFlags || roce.Addr(got[8:]) != target || got[24] != 2 || got[25] != 1 || !bytes.Equal(got[26:32], mac[:]) ||
				v.DstAddr() != wantDst || v.TTL() != 255 || v.SrcAddr() != target {
				t.Errorf("to %v from %v: %x", target, src, v.Frame())
			}
			b.accounts()
		}
	}
}

func TestFramesThatAreNotIPGoNowhere(t *testing.T) {
	b := newIPBench(t, ends4)
	eth := roce.Ethernet{Dst: roce.MAC{1, 0x80, 0xc2, 0, 0, 0x0e}, Src: roce.MAC{2, 9}, Type: 0x88cc} // LLDP
	b.give(0, b.wire(eth.Append(nil)))
	bad := b.packet(ends4.a, ends4.b, roce.ProtocolTCP, 64, nil)
	bad.Bytes[24] ^= 1 // the header's checksum
	b.give(0, bad)
	if s := b.Stats(0); len(b.sent) != 0 || s.Drops[DropOther] != 1 || s.Drops[DropBroken] != 1 {
		t.Errorf("sent %+v, drops %v", b.sent, s.Drops)
	}
	b.accounts()
}

func TestPauseFramesInBytesAreObeyed(t *testing.T) {
	for _, pfc := range []bool{true, false} {
		b := newIPBench(t, ends4)
		raw := roce.AppendPause(nil, roce.MAC{2, 9}, 1000)
		if pfc {
			var says roce.PFC
			says.Set(3, 1000)
			raw = roce.AppendPFC(nil, roce.MAC{2, 9}, &says)
		}
		f := b.wire(raw)
		f.Port = 1
		b.Receive(f)
		b.give(0, b.frame(1, 26, 1000))
		b.run(ms)
		if len(b.sent) != 1 || b.sent[0].at < 5120 {
			t.Errorf("PFC %v: sent %+v", pfc, b.sent)
		}
	}
}
