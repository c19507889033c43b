package rnic

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

func TestNeverMorePSNsAreOutstandingThanTheProfileAllows(t *testing.T) {
	for _, how := range []Recovery{GoBackN, SelectiveRepeat} {
		for _, most := range []int{1, 2, 7, 128} {
			l := recovering(how, func(c *Config) { c.Profile.MaxUnacked, c.Profile.AckRequestEvery = most, 0 })
			e := l.pairOf(t, verbs.RC, 1<<18, nil)
			seen := 0
			l.wires[0].lose = 0.02
			l.wires[0].tap = func(f *link.Frame) bool {
				seen = max(seen, f.Packet.BTH.PSN.Sub(e[0].qp.tx.una)+1)
				return true
			}
			e[0].post(t, e[0].write(e[1], 1, 1<<18))
			if wc := l.await(t, e[0], 1)[0]; wc.Status != verbs.Success || seen > most || seen < min(most, 50) {
				t.Errorf("%s: %v, %d PSNs were outstanding, %d are allowed", how, wc.Status, seen, most)
			}
		}
	}
}

// asks counts host 0's data packets and those of them that ask for an ACK, and host 1's ACKs.
func (l *lab) asks() (data, asked, acks *int) {
	data, asked, acks = new(int), new(int), new(int)
	l.wires[0].tap = func(f *link.Frame) bool {
		*data++
		if f.Packet.BTH.AckReq {
			*asked++
		}
		return true
	}
	l.wires[1].tap = func(f *link.Frame) bool {
		if f.Packet.BTH.Opcode == roce.RCAcknowledge {
			*acks++
		}
		return true
	}
	return data, asked, acks
}

func TestAnACKIsAskedForAtAMessagesEndAndAsOftenAsTheProfileSays(t *testing.T) {
	for every, want := range map[int]int{0: 1, 1: 64, 4: 16, 10: 7, 64: 1, 100: 1} {
		l := newLab(false)
		l.config = func(c *Config) { c.Profile.AckRequestEvery = every }
		e := l.pairOf(t, verbs.RC, 1<<16, nil)
		data, asked, acks := l.asks()
		e[0].post(t, e[0].write(e[1], 1, 1<<16))
		l.await(t, e[0], 1)
		if *data != 64 || *asked != want || *acks != want {
			t.Errorf("an ACK asked every %d: of %d packets %d ask, and %d ACKs come, want %d", every, *data, *asked, *acks, want)
		}
	}
}

func TestAResponderLetsSeveralRequestsPassForOneACKButNoneWaitLonger(t *testing.T) {
	for _, c := range []struct {
		every, messages, want int
		delay, least          time.Duration
	}{{4, 64, 16, time.Millisecond, 0}, {4, 3, 1, 30 * time.Microsecond, 30 * time.Microsecond}, {1, 8, 8, time.Millisecond, 0}, {0, 8, 8, 0, 0}} {
		l := newLab(false)
		l.config = func(c2 *Config) {
			c2.Profile.AckRequestEvery, c2.Profile.AckEvery, c2.Profile.AckDelay = 0, c.every, c.delay
		}
		e := l.pairOf(t, verbs.RC, 4096, nil)
		_, _, acks := l.asks()
		begun := l.v.Now()
		for i := range c.messages {
			e[0].post(t, e[0].write(e[1], uint64(i), 100))
		}
		l.await(t, e[0], c.messages)
		took := l.v.Now().Sub(begun)
		if *acks != c.want || took < c.least || took > c.least+10*time.Microsecond {
			t.Errorf("%d messages, an ACK for %d or after %v: %d ACKs in %v, want %d", c.messages, c.every, c.delay, *acks, took, c.want)
		}
	}
}

func TestMovingMessagesAllocatesNothing(t *testing.T) {
	for _, how := range []Recovery{GoBackN, SelectiveRepeat} {
		l := recovering(how, nil)
		e := l.pairOf(t, verbs.RC, 1<<16, nil)
		var wcs [8]verbs.WC
		round := func() {
			for i := range 4 {
				wr := e[0].write(e[1], uint64(i), 1<<14)
				if i == 3 {
					wr.Op = verbs.OpRDMARead
				}
				e[0].post(t, wr)
			}
			for n := 0; n < 4; {
				l.v.Step()
				n += e[0].cq.Poll(wcs[:])
			}
		}
		for range 20 {
			round()
		}
		// What is left is the slices of the test's own work requests.
		if n := testing.AllocsPerRun(50, round); n > 5 {
			t.Errorf("%s: %v allocations for 64 packets", how, n)
		}
	}
}

func TestMSNsHave24Bits(t *testing.T) {
	l := newLab(false)
	e := l.pairOf(t, verbs.RC, 64, nil)
	var got []uint32
	l.wires[1].tap = func(f *link.Frame) bool { got = append(got, f.Packet.AETH.MSN); return true }
	for _, msn := range []uint32{0, 0xffff, 0xfffffe, 0xffffff} {
		e[1].qp.rx.msn = msn
		e[0].post(t, e[0].write(e[1], 1, 8))
		l.await(t, e[0], 1)
		if want := (msn + 1) & 0xffffff; got[len(got)-1] != want {
			t.Errorf("the message after %#x is answered with MSN %#x", msn, got[len(got)-1])
		}
	}
}
