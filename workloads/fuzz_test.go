package workloads

import (
	"testing"

	"github.com/rocebed/rocebed/topo/strict"
)

// Whatever a file says, it is refused or means something: nothing panics, and what passes the
// checks selects NICs or ranks.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		mixed,
		"[{name: w, kind: write, from: [h1], to: ['h[23]:*'], bytes: 1MiB, qp: {timeout: 4, mtu: 1024}}]",
		"[{name: w, kind: all-reduce, ranks: ['*:gpu0'], data_type: float32, duration: 1ms, after: w}]",
		"[{name: a, after: b}, {name: b, after: a, kind: incast, op: atomic}]",
	} {
		f.Add(seed)
	}
	top := star(4, 2, 2)
	f.Fuzz(func(t *testing.T, text string) {
		var s struct {
			Workloads []Spec `yaml:"workloads"`
		}
		if strict.Decode("fuzz.yaml", []byte("workloads: "+text), &s) != nil || CheckAll(s.Workloads, top) != nil {
			return
		}
		for i := range s.Workloads {
			w := &s.Workloads[i]
			if w.Collective() {
				ranks, err := ranksOf(w, top)
				if err != nil || len(ranks) < 2 {
					t.Fatalf("%+v passes the checks and has %d ranks: %v", w, len(ranks), err)
				}
			} else if pairs, err := pairsOf(w, top); err != nil || len(pairs) == 0 {
				t.Fatalf("%+v passes the checks and has %d pairs: %v", w, len(pairs), err)
			}
			if size, depth := w.size(4096), w.depth(4096); size < 1 || depth < 1 || w.messages(size) < 1 {
				t.Fatalf("%+v passes the checks with %d messages of %d bytes, %d at once", w, w.messages(size), size, depth)
			}
		}
	})
}
