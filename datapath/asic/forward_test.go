package asic

import "testing"

func TestAnIdlePortSendsAFrameAtOnceAndNeedsNoEvent(t *testing.T) {
	b := newBench(t, 2, 100*gig, nil)
	b.give(0, b.frame(1, 26, 4096))
	if len(b.sent) != 1 || b.sent[0].port != 1 || b.sent[0].ttl != 63 {
		t.Fatalf("sent %+v", b.sent)
	}
	if want := 4120 * 8 / 100; int(b.sent[0].at) != want {
		t.Errorf("the last bit left at %v, want %d ns", b.sent[0].at, want)
	}
	if b.clock.Step() {
		t.Error("there was an event")
	}
	b.accounts()
}

func TestWhatWaitsGoesWhenTheLineIsFree(t *testing.T) {
	b := newBench(t, 2, 100*gig, nil)
	for range 3 {
		b.give(0, b.frame(1, 26, 1226))
	}
	if len(b.sent) != 1 || b.Depth(1, 3) != 2*1226 {
		t.Fatalf("%d sent, %d bytes wait", len(b.sent), b.Depth(1, 3))
	}
	b.accounts()
	b.run(us)
	for i, s := range b.sent {
		if want := (i + 1) * 100; int(s.at) != want {
			t.Errorf("frame %d left at %v, want %d ns", i, s.at, want)
		}
	}
	b.accounts()
}
