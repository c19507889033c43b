package silicon

import (
	"bytes"
	"math"
	"math/bits"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// far is the end of a wire, which keeps what comes.
type far struct {
	frames []*link.Frame
	at     []loop.Time
}

func (f *far) Send(fr *link.Frame, at loop.Time) {
	f.frames, f.at = append(f.frames, fr), append(f.at, at)
}

func wireTo(f *far) (*Wire, *link.Pool) {
	p := &link.Pool{}
	return NewWire(f, loop.NewVirtual(1).Node(1), p), p
}

// aPacket is a RoCE packet in struct form.
func aPacket(p *link.Pool, payload []byte) *link.Frame {
	f := p.Get()
	f.Kind, f.TTL, f.Dst = roce.KindRoCE, 64, 7
	f.Packet = roce.Packet{
		BTH: roce.BTH{Opcode: roce.RCSendOnly, DestQP: 17, PSN: 5}, Payload: payload, PayloadLen: len(payload),
		Src: roce.Addr4([4]byte{10, 0, 0, 1}), Dst: roce.Addr4([4]byte{10, 0, 0, 2}),
	}
	f.Len = int32(f.Packet.Len())
	return f
}

// asBytes is the same in byte form.
func asBytes(t *testing.T, p *link.Pool, payload []byte) *link.Frame {
	t.Helper()
	b, err := AppendFrame(nil, aPacket(p, payload), roce.MAC{}, roce.MAC{})
	if err != nil {
		t.Fatal(err)
	}
	f := p.Get()
	if err := f.Parse(b); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestEachModelHitsTheShareThatItIsGivenAndCountsIt(t *testing.T) {
	const n = 200_000
	bad := 0.01 / (0.01 + 0.3) // of the time in the bad state
	for name, c := range map[string]struct {
		model Model
		share float64
	}{
		"random": {RandomLoss{0.02}, 0.02}, "all": {RandomLoss{1}, 1}, "nth": {NthLoss{7}, 1.0 / 7},
		"burst":   {BurstLoss{P: 0.01, R: 0.3, LossBad: 0.6, LossGood: 0.001}, bad*0.6 + (1-bad)*0.001},
		"corrupt": {Corrupt{0.03}, 0.03}, "duplicate": {Duplicate{0.05}, 0.05}, "overtake": {Overtake{P: 0.04}, 0.04},
		"overtake with a gap": {Overtake{P: 1, Gap: 5}, 1.0 / 5},
		// A SEND of no bytes is 58 bytes long: Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4.
		"bit errors": {BitErrors{1e-4}, 1 - math.Pow(1-1e-4, 58*8)}, "too long": {TooLong{43}, 1}, "not too long": {TooLong{44}, 0},
		"severed": {Sever{}, 1}, "black hole": {BlackHole{}, 1},
	} {
		f := &far{}
		w, p := wireTo(f)
		if err := w.Add(Impairment{ID: "it", Model: c.model, Seed: 42, Delay: Delay{Delay: time.Microsecond}}); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			w.Send(aPacket(p, nil), loop.Time(i))
		}
		_, seen, hits, _ := w.Find("it")
		// Four standard deviations of a binomial; the bursts' losses come together, so that theirs is some times as wide.
		tolerance := 4 * math.Sqrt(c.share*(1-c.share)/n)
		if name == "burst" {
			tolerance *= 3
		}
		if got := float64(hits) / n; seen != n || math.Abs(got-c.share) > tolerance+1.0/n {
			t.Errorf("%s: hit %.5f of %d packets, want %.5f ± %.5f", name, got, seen, c.share, tolerance)
		}
		want := n
		switch c.model.(type) {
		case RandomLoss, NthLoss, BurstLoss, TooLong, Sever, BlackHole:
			want -= int(hits)
		case Duplicate:
			want += int(hits)
		}
		if len(f.frames) != want {
			t.Errorf("%s: %d frames came through, want %d with %d hits", name, len(f.frames), want, hits)
		}
	}
}

func TestJitterHasTheMeanAndTheWidthOfItsDistribution(t *testing.T) {
	for name, width := range map[string]float64{"": 1 / math.Sqrt(3), "uniform": 1 / math.Sqrt(3), "normal": 1, "pareto": 1} {
		s := &stage{Impairment: Impairment{Seed: 9, Delay: Delay{Delay: time.Millisecond, Jitter: 10 * time.Microsecond, Distribution: name}}}
		var sum, squares float64
		const n = 300_000
		for range n {
			s.seen++
			x := float64(s.late()-time.Millisecond) / float64(10*time.Microsecond)
			sum, squares = sum+x, squares+x*x
		}
		mean, dev := sum/n, math.Sqrt(squares/n-sum/n*sum/n)
		tolerance := 0.02
		if name == "pareto" { // of infinite fourth moment: its width converges slowly
			tolerance = 0.15
		}
		if math.Abs(mean) > 0.02 || math.Abs(dev-width) > tolerance {
			t.Errorf("%q: mean %.3f, deviation %.3f, want 0 and %.3f", name, mean, dev, width)
		}
	}
}

func TestCorruptionFlipsOneBitBehindTheUDPHeaderInBothForms(t *testing.T) {
	f := &far{}
	w, p := wireTo(f)
	if err := w.Add(Impairment{ID: "it", Model: Corrupt{1}, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	const head = roce.EthernetLen + roce.IPv4Len + roce.UDPLen
	for range 200 {
		f.frames = f.frames[:0]
		before := asBytes(t, p, make([]byte, 100)).Bytes
		w.Send(asBytes(t, p, make([]byte, 100)), 0)
		w.Send(aPacket(p, make([]byte, 100)), 0)
		flipped := 0
		for i, b := range f.frames[0].Bytes {
			if n := bits.OnesCount8(b ^ before[i]); n > 0 {
				flipped += n
				if i < head {
					t.Fatalf("byte %d is in the headers before RoCE's", i)
				}
			}
		}
		if flipped != 1 {
			t.Fatalf("%d bits flipped", flipped)
		}
		if !f.frames[1].Damaged {
			t.Fatal("a frame in struct form is not damaged")
		}
		b, err := AppendFrame(nil, f.frames[1], roce.MAC{}, roce.MAC{})
		var v roce.View
		if err != nil || v.Parse(b) != nil || v.ICRCOK() {
			t.Fatalf("a damaged frame's ICRC fits (%v)", err)
		}
	}
	// What is not IP is left alone, and is no hit.
	_, _, hits, _ := w.Find("it")
	pause := p.Get()
	pause.Kind, pause.Len = roce.KindPFC, roce.MinFrameLen
	w.Send(pause, 0)
	if _, seen, after, _ := w.Find("it"); after != hits || seen != 401 || pause.Damaged {
		t.Errorf("a pause frame was corrupted: %d hits of %d", after, seen)
	}
}

func TestABlackHoleAndASmallerMTUTakeIPAloneAndASeveredWireTakesAll(t *testing.T) {
	for name, c := range map[string]struct {
		model  Model
		passes int
	}{"black hole": {BlackHole{}, 1}, "MTU": {TooLong{40}, 1}, "severed": {Sever{}, 0}} {
		f := &far{}
		w, p := wireTo(f)
		if err := w.Add(Impairment{ID: "it", Model: c.model}); err != nil {
			t.Fatal(err)
		}
		pause := p.Get()
		pause.Kind, pause.Len = roce.KindPFC, roce.MinFrameLen
		w.Send(pause, 0)
		w.Send(aPacket(p, nil), 0)
		if _, _, hits, _ := w.Find("it"); len(f.frames) != c.passes || hits != uint64(2-c.passes) {
			t.Errorf("%s: %d frames of a pause and a packet came through, counted %d", name, len(f.frames), hits)
		}
	}
}

func TestADuplicateSharesNothingWithItsOriginal(t *testing.T) {
	for _, form := range []string{"struct", "bytes"} {
		f := &far{}
		w, p := wireTo(f)
		if err := w.Add(Impairment{ID: "it", Model: Duplicate{1}}); err != nil {
			t.Fatal(err)
		}
		payload := []byte{1, 2, 3, 4}
		one := aPacket(p, payload)
		if form == "bytes" {
			one = asBytes(t, p, payload)
		}
		w.Send(one, 9)
		a, b := f.frames[0], f.frames[1]
		x, errX := AppendFrame(nil, a, roce.MAC{}, roce.MAC{})
		y, errY := AppendFrame(nil, b, roce.MAC{}, roce.MAC{})
		if errX != nil || errY != nil || !bytes.Equal(x, y) || a == b || f.at[1] != 9 || a.Dst != b.Dst {
			t.Fatalf("%s: the copy differs: %v %v\n%x\n%x", form, errX, errY, x, y)
		}
		if form == "struct" {
			payload[0] = 9
		} else {
			a.Bytes[len(a.Bytes)-8] ^= 1
		}
		if z, _ := AppendFrame(nil, b, roce.MAC{}, roce.MAC{}); !bytes.Equal(y, z) {
			t.Errorf("%s: the copy changed with its original", form)
		}
	}
}

func TestWhatIsHeldKeepsItsOrderAlsoWhenTheFaultHeals(t *testing.T) {
	f := &far{}
	w, p := wireTo(f)
	if err := w.Add(Impairment{ID: "late", Delay: Delay{Delay: 100}}); err != nil {
		t.Fatal(err)
	}
	w.Send(aPacket(p, nil), 0)
	w.Remove("late")
	w.Send(aPacket(p, nil), 10)
	w.Send(aPacket(p, nil), 150)
	if f.at[0] != 100 || f.at[1] != 100 || f.at[2] != 150 {
		t.Errorf("they went on at %v", f.at)
	}
}

func TestSoManyPacketsOvertakeEachThatIsHeldBackAndTheRestGoesOnWhenTheFaultHeals(t *testing.T) {
	f := &far{}
	w, p := wireTo(f)
	if err := w.Add(Impairment{ID: "swap", Model: Overtaken{P: 1, Gap: 10, Window: 3}}); err != nil {
		t.Fatal(err)
	}
	var want []byte
	for i := range byte(101) {
		w.Send(aPacket(p, []byte{i}), loop.Time(i))
		switch {
		case i%10 == 9: // the tenth
		case i%10 == 2 && i > 9:
			want = append(want, i, i-3)
		default:
			want = append(want, i)
		}
	}
	if _, seen, hits, _ := w.Find("swap"); seen != 101 || hits != 10 {
		t.Errorf("%d of %d packets are counted", hits, seen)
	}
	w.Remove("swap")
	want = append(want, 99) // one packet had overtaken it
	var got []byte
	for _, f := range f.frames {
		got = append(got, f.Packet.Payload[0])
	}
	if !bytes.Equal(got, want) {
		t.Errorf("they went on in the order\n%v, not\n%v", got, want)
	}
	if (Overtaken{P: 1, Window: 3}).Check() == nil || (Overtaken{P: 0.5}).Check() == nil {
		t.Error("a window that no packet could fill, or an empty one, is taken")
	}
}

func TestAWireTakesNoImpairmentTwiceAndNotMoreThanItHolds(t *testing.T) {
	w, _ := wireTo(&far{})
	for i := range maxStages {
		if err := w.Add(Impairment{ID: string(rune('a' + i)), Model: RandomLoss{0.1}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Add(Impairment{ID: string(rune('a' + i)), Model: RandomLoss{0.1}}); err == nil {
			t.Fatal("twice the same")
		}
	}
	if err := w.Add(Impairment{ID: "one more", Model: RandomLoss{0.1}}); err == nil {
		t.Error("one more than a wire holds was taken")
	}
}

func TestAWireThatNothingIsWrongWithCostsNoMemory(t *testing.T) {
	f := &far{}
	w, p := wireTo(f)
	one := aPacket(p, nil)
	if n := testing.AllocsPerRun(100, func() {
		f.frames, f.at = f.frames[:0], f.at[:0]
		w.Send(one, 5)
	}); n > 0 {
		t.Errorf("%v allocations a frame", n)
	}
}
