package link

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

const rate100G = 100_000_000_000

// What the two ends of a cable make of pause frames agrees: a priority is silent from the first
// frame's arrival to the last one's, whatever is paused and ended in between, as long as
// the owner sends what it is asked to.
func TestAPeerThatObeysIsSilentExactlyWhileAPauserPauses(t *testing.T) {
	for _, global := range []bool{false, true} {
		var (
			p    Pauser
			peer Paused
			now  loop.Time
		)
		p.Global, p.Quanta = global, 1000 // 5.12 µs at 100 Gb/s
		send := func() {
			var f Frame
			p.Fill(now, rate100G, &f)
			want := roce.KindPFC
			if global {
				want = roce.KindPause
			}
			if f.Kind != want || f.Len != roce.MinFrameLen {
				t.Fatalf("kind %v, %d bytes", f.Kind, f.Len)
			}
			peer.Take(now, rate100G, &f.PFC)
		}
		var on [8]bool
		rng := uint64(7)
		for now = 0; now < 1_000_000; now += 100 {
			if at, ok := p.Refresh(); ok && now >= at {
				send()
			}
			rng = mix(rng)
			if i := uint8(rng % 8); rng>>8%40 == 0 {
				changed := false
				if on[i] {
					changed = p.XON(now, i)
				} else {
					changed = p.XOFF(now, i)
				}
				if on[i] = !on[i]; !changed {
					t.Fatalf("%v: a change of priority %d asks for no frame", now, i)
				}
				send()
			}
			any := p.Paused() != 0
			for i := range uint8(8) {
				want := on[i] || global && any
				if p.Pauses(i) != on[i] || peer.Holds(now, i) != want {
					t.Fatalf("%v, global %v: priority %d is paused %v by the pauser, %v at the peer; want %v", now, global, i, p.Pauses(i), peer.Holds(now, i), want)
				}
			}
		}
		for i := range uint8(8) {
			if !global && p.Time(now, i) != peer.Time(now, i) {
				t.Errorf("priority %d: paused for %v, silent for %v", i, p.Time(now, i), peer.Time(now, i))
			}
			if p.Began[i] == 0 || p.Frames[i] < p.Began[i] {
				t.Errorf("priority %d: %d pauses, %d frames", i, p.Began[i], p.Frames[i])
			}
		}
	}
}

func TestAPauseThatIsNotRefreshedEndsAtItsPeer(t *testing.T) {
	var p Pauser
	var peer Paused
	var f Frame
	p.XOFF(0, 3)
	p.Fill(0, rate100G, &f)
	peer.Take(0, rate100G, &f.PFC)
	long := roce.QuantaTime(0xffff, rate100G)
	if at, ok := p.Refresh(); !ok || at != loop.Time(long/2) {
		t.Errorf("refresh at %v (%v), want at half of %v", at, ok, long)
	}
	if !peer.Holds(loop.Time(long)-1, 3) || peer.Holds(loop.Time(long), 3) || peer.Holds(0, 2) {
		t.Error("the pause lasts too long, too short, or holds another priority")
	}
}

func TestPausingWhatIsPausedAsksForNoFrame(t *testing.T) {
	var p Pauser
	if p.XON(0, 3) {
		t.Error("XON of what is not paused asks for a frame")
	}
	if !p.XOFF(0, 3) || p.XOFF(1, 3) || !p.XON(10, 3) || p.XON(11, 3) || p.Time(100, 3) != 10*time.Nanosecond {
		t.Error("the second of two asks for a frame, or time is wrong")
	}
}

func TestFlowsThatDifferInOnePortSpreadEvenly(t *testing.T) {
	a, b := roce.Addr4([4]byte{10, 0, 0, 1}), roce.Addr4([4]byte{10, 0, 1, 1})
	const ways, flows = 8, 8000
	var n [ways]int
	for i := range flows {
		n[FlowHash(a, b, roce.ProtocolUDP, 49152+uint16(i), roce.Port)%ways]++
	}
	for w, k := range n { // binomial: mean 1000, deviation 30
		if k < 850 || k > 1150 {
			t.Errorf("way %d got %d of %d flows", w, k, flows)
		}
	}
	if FlowHash(a, b, 17, 1, 2) == FlowHash(b, a, 17, 1, 2) || FlowHash(a, b, 17, 1, 2) == FlowHash(a, b, 17, 2, 1) {
		t.Error("direction doesn't count")
	}
}

func TestRoCEsPrioritiesAreWhatNetworksUse(t *testing.T) {
	m := DefaultPriorities()
	for dscp, want := range map[uint8]uint8{26: 3, 48: 6, 0: 0, 8: 1, 46: 5, 63: 7} {
		if got := m.Of(roce.TrafficClass(dscp, roce.CE)); got != want {
			t.Errorf("DSCP %d has priority %d, want %d", dscp, got, want)
		}
	}
}
