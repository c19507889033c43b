package rnic

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

func TestAServerIsExactOverManyThings(t *testing.T) {
	s := newServer(97_000_000_000)
	var last loop.Time
	const n, size = 1_000_000, 1500
	for range n {
		at := s.serve(0, size)
		if at < last {
			t.Fatal("time went back")
		}
		last = at
	}
	want := float64(n) * size * 8 / 97
	if got := float64(last); got < want*0.9999 || got > want*1.0001 {
		t.Errorf("a million packets of %d bytes took %v, want %v ns", size, last, want)
	}
}

func TestAServerThatIsFreeStartsAtOnceAndOneWithoutARateCostsNothing(t *testing.T) {
	s := newServer(8_000_000_000) // a byte a nanosecond
	if at := s.serve(100, 50); at != 150 {
		t.Errorf("through at %v, want 150", at)
	}
	if at := s.serve(120, 50); at != 200 {
		t.Errorf("behind another it is through at %v, want 200", at)
	}
	if at := s.serve(1000, 50); at != 1050 {
		t.Errorf("idle again it is through at %v, want 1050", at)
	}
	free := newServer(0)
	if at := free.serve(70, 1<<30); at != 70 {
		t.Errorf("without a rate it is through at %v, want 70", at)
	}
	if at := s.occupy(1000, 10*time.Nanosecond); at != 1050 {
		t.Errorf("began at %v, want 1050", at)
	}
	if at := s.serve(0, 5); at != 1065 {
		t.Errorf("after an occupation it is through at %v, want 1065", at)
	}
}
