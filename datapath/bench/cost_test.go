package bench

import (
	"runtime"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

// What a packet costs, in counts that no other load on the machine changes.

// Where nothing waits, each link that a packet crosses is one event, and so is its turn at its sender.
// Every fourth one brings an ACK back the same way.
func TestAPacketIsOneEventALink(t *testing.T) {
	f := newRealFabric(t, fatTree(t, 4), "default")
	for _, h := range f.at[1:] {
		h.stop = true
	}
	f.v.RunUntil(loop.Time(400 * time.Microsecond)) // the others' flows end
	n, events := f.data(), f.v.Handled()
	f.v.RunUntil(f.v.Now().Add(100 * time.Microsecond))
	n, events = f.data()-n, f.v.Handled()-events
	const links = 6
	most := links + 1 + float64(links+1)/ackEvery + 0.5 // and a message now and then
	if got := float64(events) / float64(n); n < 250 || got > most {
		t.Errorf("%d packets took %d events, %.2f each; at most %.2f were to be", n, events, got, most)
	}
}

func TestASteadyFabricAllocatesNothingByPacket(t *testing.T) {
	f := newRealFabric(t, fatTree(t, 4), "default", loop.Workers(1))
	f.v.RunUntil(loop.Time(1500 * time.Microsecond))
	runtime.GC()
	n := f.data()
	got := testing.AllocsPerRun(1, func() { f.v.RunUntil(f.v.Now().Add(200 * time.Microsecond)) })
	n = (f.data() - n) / 2 // AllocsPerRun has a run of its own before
	if each := got / float64(n); n < 2000 || each > 0.02 {
		t.Errorf("%d packets took %.0f allocations, %.3f each", n, got, each)
	}
}
