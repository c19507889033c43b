package roce

import (
	"math/rand/v2"
	"testing"
	"testing/quick"
)

func TestPSNArithmeticWrapsAt24Bits(t *testing.T) {
	mod := func(v uint32) PSN { return PSN(v) & PSNMask }
	law := func(name string, f any) {
		t.Helper()
		if err := quick.Check(f, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	law("what is added is the distance", func(v uint32, n int32) bool {
		d := int(n >> 8) // -2^23 to 2^23-1
		return mod(v).Add(d).Sub(mod(v)) == d
	})
	law("adding is associative and stays within 24 bits", func(v uint32, a, b int32) bool {
		p := mod(v).Add(int(a)).Add(int(b))
		return p == mod(v).Add(int(a)+int(b)) && p <= PSNMask
	})
	law("distances don't depend on where one counts from", func(a, b, shift uint32) bool {
		p, q := mod(a), mod(b)
		return p.Sub(q) == p.Add(int(shift)).Sub(q.Add(int(shift)))
	})
	law("before is the reverse of after", func(a, b uint32) bool {
		p, q := mod(a), mod(b)
		if p.Sub(q) == -1<<23 { // just half way: each is before the other
			return p.Before(q) && q.Before(p)
		}
		return p.Before(q) == q.After(p) && (p == q) != (p.Before(q) || p.After(q))
	})
	law("next is one more", func(a uint32) bool { p := mod(a); return p.Next() == p.Add(1) && p.Before(p.Next()) })
	law("half of all PSNs come before one", func(a uint32) bool {
		p, r := mod(a), rand.New(rand.NewPCG(uint64(a), 1))
		for range 100 {
			d := r.IntN(1 << 23)
			if p.Add(d).Before(p) || !p.Add(-1-d).Before(p) {
				return false
			}
		}
		return true
	})
}

func TestAPSNLiesInAWindow(t *testing.T) {
	for _, c := range []struct {
		p, first PSN
		n        int
		want     bool
	}{
		{0xffffff, 0xffffff, 1, true}, {0, 0xffffff, 1, false}, {0, 0xffffff, 2, true}, {0xfffffe, 0xffffff, 2, false},
		{5, 5, 0, false}, {0x7ffffe, 0xffffff, 1 << 23, true}, {0x7fffff, 0xffffff, 1 << 23, false},
	} {
		if got := c.p.In(c.first, c.n); got != c.want {
			t.Errorf("%#x among the %d from %#x on: %v, want %v", c.p, c.n, c.first, got, c.want)
		}
	}
}
