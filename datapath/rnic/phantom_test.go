package rnic

import (
	"math/rand/v2"
	"testing"

	"github.com/rocebed/rocebed/datapath/link"
)

// What extents say is what a memory of one (stream, offset) a byte holds, after any writes; and no
// two runs that continue each other stay apart.
func TestPhantomMemoryHoldsWhatWasWrittenLast(t *testing.T) {
	const size = 200
	type cell struct{ stream, off uint64 }
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		e, f := newExtents(size), newExtents(size)
		var model, other [size]cell
		put := func(e *extents, m *[size]cell) {
			at := rng.Uint64N(size)
			n := rng.Uint64N(size-at) + 1
			if rng.IntN(3) > 0 {
				n = min(n, 1+rng.Uint64N(12))
			}
			s, off := rng.Uint64N(3), rng.Uint64N(4)
			if rng.IntN(2) == 0 {
				off = at // so that neighbours often continue each other
			}
			e.put(at, n, s, off)
			for i := range n {
				m[at+i] = cell{}
				if s != 0 {
					m[at+i] = cell{s, off + i}
				}
			}
		}
		for step := range 200 {
			switch put(e, &model); rng.IntN(8) {
			case 0:
				put(f, &other)
			case 1:
				at, from := rng.Uint64N(size), rng.Uint64N(size)
				n := rng.Uint64N(size-max(at, from)) + 1
				was := model
				e.add(at, n, f, from)
				for i := range n {
					x, y := was[at+i], other[from+i]
					switch {
					case y.stream == 0:
					case x.stream == 0:
						model[at+i] = y
					case x.off == y.off:
						model[at+i] = cell{x.stream + y.stream, x.off}
					default:
						model[at+i] = cell{mix64(x.stream ^ mix64(y.stream^(x.off-y.off))), x.off}
					}
				}
			}
			at := rng.Uint64N(size)
			n := rng.Uint64N(size - at + 1)
			i := at
			for _, x := range e.get(nil, at, n) {
				for k := range uint64(x.Len) {
					if model[i].stream != x.Stream || x.Stream != 0 && model[i].off != x.Off+k {
						t.Fatalf("seed %d step %d: byte %d is %+v, want %+v", seed, step, i, x, model[i])
					}
					i++
				}
			}
			if i != at+n {
				t.Fatalf("seed %d step %d: got %d bytes of %d", seed, step, i-at, n)
			}
			for k := 1; k < len(e.runs); k++ {
				if e.runs[k].at <= e.runs[k-1].at || e.runs[k].follows(&e.runs[k-1]) {
					t.Fatalf("seed %d step %d: runs %+v", seed, step, e.runs)
				}
			}
			if e.runs[0].at != 0 || e.runs[len(e.runs)-1].at >= size {
				t.Fatalf("seed %d step %d: runs %+v", seed, step, e.runs)
			}
			want, c := -1, model[at]
			for k := range n {
				if m := model[at+k]; m.stream != c.stream || c.stream != 0 && m.off != c.off+k {
					want = int(k)
					break
				}
			}
			if got := e.differs(at, n, c.stream, c.off); got != want {
				t.Fatalf("seed %d step %d: differs at %d, want %d", seed, step, got, want)
			}
		}
	}
}

func TestContentThatArrivesInOrderStaysOneRun(t *testing.T) {
	e := newExtents(1 << 30)
	for i := range uint64(1 << 18) {
		e.put(i*4096, 4096, 7, 1000+i*4096)
	}
	if len(e.runs) != 1 || e.differs(0, 1<<30, 7, 1000) != -1 {
		t.Errorf("%d runs", len(e.runs))
	}
	if x := e.get(nil, 4095, 2); len(x) != 1 || x[0] != (link.Extent{Stream: 7, Off: 5095, Len: 2}) {
		t.Errorf("%+v", x)
	}
}

// A packet of a message that arrives in order costs the same however much memory and however many messages there are.
func BenchmarkPhantomPlaceInOrder(b *testing.B) {
	for _, messages := range []int{1, 1000} {
		b.Run(map[int]string{1: "one message", 1000: "1000 interleaved"}[messages], func(b *testing.B) {
			const each = 1 << 20
			e := newExtents(messages * each)
			for i := range messages {
				e.put(uint64(i)*each+each-64, 64, 99, 0)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				m, k := uint64(i%messages), uint64(i/messages)
				e.put(m*each+k*4096%(each-4096), 4096, m+1+k/255, k*4096)
			}
		})
	}
}

func BenchmarkPhantomRead(b *testing.B) {
	e := newExtents(1 << 30)
	e.put(0, 1<<30, 7, 0)
	var x []link.Extent
	b.ReportAllocs()
	for i := range b.N {
		x = e.get(x[:0], uint64(i)*4096%(1<<29), 4096)
	}
}
