package rnic

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rocebed/rocebed/datapath/loop"
)

// The cache is the same as a list that is searched from its front.
func TestTheCacheEvictsWhatWasUsedLeastRecently(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, entries := range []int{1, 2, 3, 16, 100} {
		r := newTranslator(&Translate{Entries: entries, Page: 4096})
		var model []uint64
		for i := range 20_000 {
			page := rng.Uint64N(uint64(2*entries) + 2)
			at := slices.Index(model, page)
			if at >= 0 {
				model = slices.Delete(model, at, at+1)
			} else if len(model) == entries {
				model = model[:entries-1]
			}
			model = slices.Insert(model, 0, page)
			if hit := r.touch(page); hit != (at >= 0) {
				t.Fatalf("%d entries, step %d: page %d hits %v, want %v", entries, i, page, hit, at >= 0)
			}
		}
		n := 0
		for i := r.first; i != nobody; i = r.nodes[i].next {
			if r.nodes[i].page != model[n] {
				t.Fatalf("%d entries: the order is wrong at %d", entries, n)
			}
			n++
		}
		if n != len(model) {
			t.Fatalf("%d entries: %d in the list, want %d", entries, n, len(model))
		}
	}
}

func TestARegionThatFitsTheCacheMissesOnceAPageAndALargerOneAlways(t *testing.T) {
	for _, c := range []struct {
		pages  int
		misses uint64 // of 10 rounds
	}{{64, 64}, {65, 650}} {
		r := newTranslator(&Translate{Entries: 64, Page: 4096, Miss: 500})
		for range 10 {
			for p := range c.pages {
				r.at(0, uint64(p)*4096, 4096)
			}
		}
		if r.misses != c.misses || r.hits+r.misses != uint64(10*c.pages) {
			t.Errorf("%d pages: %d misses and %d hits, want %d misses", c.pages, r.misses, r.hits, c.misses)
		}
	}
}

func TestMissesOverlapAsFarAsTheWalkerCan(t *testing.T) {
	for _, c := range []struct {
		parallel    int
		first, last loop.Time // of 100 misses that come at once
	}{{0, 500, 50_000}, {1, 500, 50_000}, {5, 500, 10_400}} {
		r := newTranslator(&Translate{Entries: 8, Page: 4096, Miss: 500, Parallel: c.parallel})
		var first, last loop.Time
		for p := range 100 {
			last = r.at(0, uint64(p)*4096, 64)
			if p == 0 {
				first = last
			}
		}
		if first != c.first || last != c.last {
			t.Errorf("%d in parallel: the first is known at %v and the last at %v, want %v and %v", c.parallel, first, last, c.first, c.last)
		}
		if at := r.at(100_000, 99*4096, 64); at != 100_000 {
			t.Errorf("a hit is known at %v", at)
		}
	}
}

func TestWhoFindsAPageThatIsBeingFetchedWaitsForIt(t *testing.T) {
	r := newTranslator(&Translate{Entries: 8, Page: 4096, Miss: 500, Parallel: 8})
	r.at(0, 4096, 64)
	if at := r.at(100, 4096+64, 64); at != 500 {
		t.Errorf("the second access knows it at %v, the first at 500ns", at)
	}
	r.at(200, 8192, 64)
	if at := r.at(300, 4096, 64); at != 500 || r.misses != 2 {
		t.Errorf("known at %v with %d misses", at, r.misses)
	}
	if at := r.at(600, 4096, 64); at != 600 {
		t.Errorf("once it is there it is known at %v", at)
	}
}

func TestAPacketAcrossTwoPagesNeedsBoth(t *testing.T) {
	r := newTranslator(&Translate{Entries: 8, Page: 4096, Miss: 500})
	r.at(0, 4000, 200)
	r.at(0, 8192, 0)
	if r.misses != 3 {
		t.Errorf("%d misses, want 3", r.misses)
	}
	if newTranslator(&Translate{}) != nil {
		t.Error("a translation without a cache isn't free")
	}
}

func TestATranslationThatCannotBeIsRefused(t *testing.T) {
	for _, c := range []Translate{{Entries: -1, Page: 4096}, {Entries: 1 << 25, Page: 4096}, {Entries: 8, Page: 5000}, {Entries: 8, Page: 2048}, {Entries: 8},
		{Entries: 8, Page: 4096, Miss: -1}, {Entries: 8, Page: 4096, Parallel: -1}} {
		if c.Validate() == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func BenchmarkTranslateOtherPageHit(b *testing.B) {
	r := newTranslator(&Translate{Entries: 2048, Page: 4096, Miss: 500})
	for i := range b.N {
		r.at(0, uint64(i&1023)*4096, 4096)
	}
}

func BenchmarkTranslateMiss(b *testing.B) {
	r := newTranslator(&Translate{Entries: 2048, Page: 4096, Miss: 500})
	for i := range b.N {
		r.at(0, uint64(i)*4096, 4096)
	}
}
