package link

import (
	"testing"
	"unsafe"

	"github.com/rocebed/rocebed/datapath/loop"
)

func TestWhatEveryHopLooksAtLiesInTwoCacheLines(t *testing.T) {
	var f Frame
	const line = 64
	if size := unsafe.Sizeof(f); size%line != 0 {
		t.Errorf("a frame has %d bytes: not whole lines", size)
	}
	if end := unsafe.Offsetof(f.to) + unsafe.Sizeof(f.to); end > line {
		t.Errorf("timer and receiver end at %d", end)
	}
	if at := unsafe.Offsetof(f.Len); at != line {
		t.Errorf("what hops look at begins at %d", at)
	}
	if end := unsafe.Offsetof(f.Packet) + unsafe.Sizeof(f.Packet.BTH); end > 2*line {
		t.Errorf("the transport header ends at %d", end)
	}
}

type sink struct{ got []*Frame }

func (s *sink) Receive(f *Frame) { s.got = append(s.got, f) }

func TestAFrameArrivesAtThePortItWasSentTo(t *testing.T) {
	v := loop.NewVirtual(1)
	a, b := v.Node(1), v.Node(2)
	var p Pool
	var s sink
	f := p.Get()
	f.ArriveAt(&s, 7)
	a.Send(b, 7, 10, &f.Timer)
	v.RunUntil(10)
	if len(s.got) != 1 || s.got[0] != f || f.Port != 7 {
		t.Fatalf("got %v at port %d", s.got, f.Port)
	}
	fired := false
	f.Timer.Fire = func() { fired = true }
	b.Arm(&f.Timer, 20)
	v.RunUntil(20)
	if !fired {
		t.Error("the timer of a frame that arrived is not its owner's")
	}
}
