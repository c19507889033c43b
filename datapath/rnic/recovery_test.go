package rnic

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
	"github.com/rocebed/rocebed/workloads/verbs/conformance"
)

// recovering makes a lab whose devices recover in a way.
func recovering(how Recovery, change func(*Config)) *lab {
	l := newLab(false)
	l.config = func(c *Config) {
		c.Profile.Recovery = how
		resolve := c.Resolve
		c.Resolve = func(a roce.Addr) (Neighbor, bool) {
			n, ok := resolve(a)
			n.Selective = how == SelectiveRepeat
			return n, ok
		}
		if change != nil {
			change(c)
		}
	}
	return l
}

func TestTheDeviceConformsHoweverItRecovers(t *testing.T) {
	for _, how := range []Recovery{GoBack0, SelectiveRepeat} {
		t.Run(string(how), func(t *testing.T) { conformance.Run(t, provider(recovering(how, nil))) })
	}
}

// move writes n bytes from host 0 to host 1 and says how long that took and what was sent again; false when it
// isn't done after a time.
func (l *lab) move(t *testing.T, e [2]*end, n int, most time.Duration) (took time.Duration, again uint64, done bool) {
	t.Helper()
	begun := l.v.Now()
	wr := verbs.SendWR{Op: verbs.OpRDMAWrite, Flags: verbs.Signaled, SGL: e[0].sge(0, n), RemoteAddr: e[1].mem.addr, RKey: e[1].mr.was}
	if err := e[0].qp.PostSend(wr); err != nil {
		t.Fatal(err)
	}
	var wcs []verbs.WC
	for len(wcs) == 0 && l.v.Now().Sub(begun) < most && l.v.Step() {
		wcs = e[0].poll()
	}
	if len(wcs) > 0 && wcs[0].Status != verbs.Success {
		t.Fatalf("a WRITE of %d bytes: %v at %v", n, wcs[0].Status, l.v.Now())
	}
	return l.v.Now().Sub(begun), e[0].count.RetransmittedPackets, len(wcs) > 0
}

// every loses every nth data packet of host 0's.
func (l *lab) every(n int) {
	i := 0
	l.wires[0].tap = func(f *link.Frame) bool {
		if f.Packet.PayloadLen == 0 {
			return true
		}
		i++
		return i%n != 0
	}
}

// Not a multiple of 256 packets, or the same ones would be lost in each round.
const megabytes4 = 4_000_000

// A drop of every 256th packet is what made messages of 4 MB never arrive (Guo et al., SIGCOMM 2016).
func TestGoBack0NeverEndsWhereEvery256thPacketIsLostAndGoBackNDoes(t *testing.T) {
	for _, how := range []Recovery{GoBack0, GoBackN, SelectiveRepeat} {
		l := recovering(how, func(c *Config) { c.Profile.AckRequestEvery = 0 })
		e := l.pairOf(t, verbs.RC, megabytes4, nil)
		l.every(256)
		took, again, done := l.move(t, e, megabytes4, 10*time.Millisecond)
		if done != (how != GoBack0) {
			t.Errorf("%s: 4 MB done is %v after %v, %d packets sent again", how, done, took, again)
		}
		if sent := e[0].count.TxPackets; how == GoBack0 && sent < 10*megabytes4/1024 {
			t.Errorf("%s: only %d packets in %v: the wire isn't busy", how, sent, took)
		}
	}
}

func TestSelectiveRepeatSendsAgainWhatWasLostAndNothingElse(t *testing.T) {
	for _, n := range []int{7, 100, 1000} {
		l := recovering(SelectiveRepeat, nil)
		e := l.pairOf(t, verbs.RC, megabytes4, nil)
		l.every(n)
		_, again, done := l.move(t, e, megabytes4, time.Second)
		first := uint64((megabytes4 + 1023) / 1024)
		lost := (first + again) / uint64(n)
		if !done || again < lost || again > lost+lost/10+1 {
			t.Errorf("every %dth lost, %d in all: %d sent again, done %v", n, lost, again, done)
		}
		l = recovering(GoBackN, nil)
		e = l.pairOf(t, verbs.RC, megabytes4, nil)
		l.every(n)
		if _, more, done := l.move(t, e, megabytes4, time.Second); !done || more < 2*again {
			t.Errorf("every %dth lost: going back sends %d packets again (done %v), selectively %d", n, more, done, again)
		}
	}
}

func TestSelectiveRepeatIsRefusedWhereThePeerDoesNotKnowIt(t *testing.T) {
	l := recovering(SelectiveRepeat, nil)
	config := l.config
	l.config = func(c *Config) {
		config(c)
		c.Resolve = func(a roce.Addr) (Neighbor, bool) { return Neighbor{Dst: 1}, a != roce.Addr4([4]byte{10, 9, 9, 9}) }
	}
	d, err := l.open(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		to   string
		want error
	}{{"10.0.0.2", ErrUnsupported}, {"10.9.9.9", nil}} {
		e := l.endOf(t, d, verbs.RC, 64, nil, 0)
		a := verbs.QPAttr{State: verbs.Init, PathMTU: 1024, AH: verbs.AHAttr{DGID: netip.MustParseAddr(c.to)}}
		e.qp.Modify(a, verbs.MaskState|verbs.MaskAccess, func(error) {})
		a.State = verbs.RTR
		over := false
		e.qp.Modify(a, verbs.MaskState|transitions[[2]verbs.QPState{verbs.Init, verbs.RTR}].needs[verbs.RC], func(got error) {
			if over = true; !errors.Is(got, c.want) {
				t.Errorf("to %s: %v, want %v", c.to, got, c.want)
			}
		})
		l.settle(t, func() bool { return over })
	}
}

// A wire that changes the order and loses nothing makes nothing but selective acknowledgements.
func TestSelectiveRepeatPlacesWhatOvertakesAndCompletesInOrder(t *testing.T) {
	l := recovering(SelectiveRepeat, nil)
	e := l.pairOf(t, verbs.RC, 1<<16, nil)
	w := l.wires[0]
	w.jitter = 3 * time.Microsecond
	for i := range e[0].mem.bytes {
		e[0].mem.bytes[i] = byte(i * 7)
	}
	const messages, size = 16, 4096
	for i := range messages {
		wr := verbs.SendWR{ID: uint64(i), Op: verbs.OpRDMAWrite, Flags: verbs.Signaled, SGL: e[0].sge(i*size, size), RemoteAddr: e[1].mem.addr + uint64(i*size), RKey: e[1].mr.was}
		if err := e[0].qp.PostSend(wr); err != nil {
			t.Fatal(err)
		}
	}
	for i, wc := range l.await(t, e[0], messages) {
		if wc.ID != uint64(i) || wc.Status != verbs.Success {
			t.Fatalf("completion %d is %d, %v", i, wc.ID, wc.Status)
		}
	}
	if string(e[0].mem.bytes) != string(e[1].mem.bytes) {
		t.Error("the bytes differ")
	}
	if c := &e[0].count; c.LocalAckTimeoutErr != 0 || e[1].count.OutOfSequence == 0 {
		t.Errorf("%d timeouts; %d packets came out of sequence", c.LocalAckTimeoutErr, e[1].count.OutOfSequence)
	}
}

func TestEachGapIsAnsweredByOneNAKWhateverFilledTheOneBefore(t *testing.T) {
	l := newLab(false)
	e := l.pairOf(t, verbs.RC, 4096, nil)
	naks := 0
	l.wires[1].tap = func(f *link.Frame) bool {
		if f.Packet.BTH.Opcode == roce.RCAcknowledge && f.Packet.AETH.Syndrome == roce.NAK(roce.NAKPSNSequenceError) {
			naks++
		}
		return false
	}
	request := func(op roce.Opcode, psn roce.PSN) {
		f := e[0].frame(&e[0].qp.path, op, e[1].qp.num, psn, 0)
		f.Packet.Payload = nil
		f.Packet.RETH = roce.RETH{VA: e[1].mem.addr, RKey: e[1].mr.was}
		f.Packet.AtomicETH = roce.AtomicETH{VA: e[1].mem.addr, RKey: e[1].mr.was}
		e[1].Receive(f)
		l.v.RunUntil(l.v.Now().Add(10 * labDelay))
	}
	psn := e[1].qp.rx.epsn
	for i, op := range []roce.Opcode{roce.RCRDMAWriteOnly, roce.RCRDMAReadRequest, roce.RCFetchAdd, roce.RCSendOnly, roce.RCRDMAWriteOnly, roce.RCCmpSwap} {
		e[1].recv(t, verbs.RecvWR{})
		for k := range 3 {
			request(roce.RCRDMAWriteOnly, psn.Add(1+k))
		}
		if naks != i+1 {
			t.Fatalf("gap %d: %d NAKs so far for as many gaps", i+1, naks)
		}
		request(op, psn)
		psn = psn.Next()
	}
}

// An RNR NAK that was late on its way says of a SEND that it waits, which has been received meanwhile. When the wait is over there is
// nothing to send again; what is lost of the READ behind it has to be missed all the same.
func TestSelectiveRepeatMissesAResponseAfterAWaitThatWasInVain(t *testing.T) {
	l := recovering(SelectiveRepeat, nil)
	e := l.pairOf(t, verbs.RC, 4096, nil)
	psn, responses := e[0].qp.tx.psn, 0
	l.wires[1].tap = func(f *link.Frame) bool {
		if f.Packet.Info().Operation != roce.OpRDMAReadResponse {
			return responses > 0
		}
		if responses++; responses == 1 {
			late := e[1].frame(&e[1].qp.path, roce.RCAcknowledge, e[0].qp.num, psn, 0)
			late.Packet.AETH.Syndrome = roce.RNRNAK(12)
			l.wires[1].Send(late, l.v.Now()) // ahead of the response
		}
		return responses != 2
	}
	e[1].recv(t, verbs.RecvWR{ID: 7, SGL: e[1].sge(0, 100)})
	read := verbs.SendWR{ID: 2, Op: verbs.OpRDMARead, Flags: verbs.Signaled, SGL: e[0].sge(1024, 2048), RemoteAddr: e[1].mem.addr, RKey: e[1].mr.was}
	e[0].post(t, verbs.SendWR{ID: 1, Op: verbs.OpSend, Flags: verbs.Signaled, SGL: e[0].sge(0, 100)}, read)
	for i, wc := range l.await(t, e[0], 2) {
		if wc.Status != verbs.Success {
			t.Errorf("completion %d: %+v", i, wc)
		}
	}
	if n := e[0].count.RNRNakRetryErr; n != 1 || responses < 3 {
		t.Errorf("%d RNR NAKs and %d responses came", n, responses)
	}
}
