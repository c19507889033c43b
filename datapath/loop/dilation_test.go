package loop

import (
	"math"
	"testing"
	"time"
)

func TestDilationIsAPowerOfTwo(t *testing.T) {
	for n := range uint64(70) {
		_, err := NewDilation(n)
		want := n == 1 || n == 2 || n == 4 || n == 8 || n == 16 || n == 32 || n == 64
		if (err == nil) != want {
			t.Errorf("NewDilation(%d): %v", n, err)
		}
	}
	if _, err := NewDilation(1 << 32); err == nil {
		t.Error("2^32 was taken")
	}
}

func TestWallUndoesFabric(t *testing.T) {
	for e := range 32 {
		d := Dilation(1) << e
		if d.Exponent() != e {
			t.Errorf("exponent of %v is %d", d, d.Exponent())
		}
		for _, span := range []Duration{0, 1, -1, 55 * time.Microsecond, -time.Second, 2 * time.Second} {
			if got := d.Fabric(d.Wall(span)); got != span {
				t.Errorf("dilation %v: %v comes back as %v", d, span, got)
			}
		}
	}
}

func TestWallSaturates(t *testing.T) {
	if got := Dilation(1 << 31).Wall(math.MaxInt64); got != math.MaxInt64 {
		t.Errorf("got %v", got)
	}
	if got := Dilation(1 << 20).Wall(-time.Hour * 24 * 365); got != -math.MaxInt64 {
		t.Errorf("got %v", got)
	}
}

func TestZeroDilationIsOne(t *testing.T) {
	var d Dilation
	if d.Factor() != 1 || d.Wall(time.Second) != time.Second || d.String() != "1" {
		t.Errorf("zero dilation: factor %d, a second is %v, written %q", d.Factor(), d.Wall(time.Second), d)
	}
}
