package rnic

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

// Translate is an address translation's cache and cost: the NIC's own (MTT), or the IOMMU's as the NIC sees
// it through ATS.
type Translate struct {
	Entries  int           // pages that the cache holds; 0: everything hits
	Page     int           // bytes that an entry covers, a power of two
	Miss     time.Duration // of fetching an entry
	Parallel int           // how many misses may be under way at once; 0: one
}

// Validate says what is wrong.
func (t *Translate) Validate() error {
	switch {
	case t.Entries == 0:
		return nil
	case t.Entries < 0 || t.Entries > 1<<24:
		return fmt.Errorf("translation Entries is %d: give 1 to %d pages, or 0 for no misses", t.Entries, 1<<24)
	case t.Page < 4096 || bits.OnesCount(uint(t.Page)) != 1:
		return fmt.Errorf("translation Page is %d: give a power of two of at least 4096 bytes", t.Page)
	case t.Miss < 0:
		return fmt.Errorf("translation Miss is %v: give the time of fetching an entry", t.Miss)
	case t.Parallel < 0:
		return fmt.Errorf("translation Parallel is %d: give how many misses may be under way", t.Parallel)
	}
	return nil
}

// translator is a translation at work. A hit costs nothing; a miss takes Miss, of which Parallel
// can be under way. The cache evicts what was used least recently.
type translator struct {
	hits, misses uint64 // who finds a page that is being fetched waits for it, and hits

	shift  uint
	miss   time.Duration
	each   time.Duration // a miss keeps the walker for so long
	walker server

	// The cache: nodes in a list from most to least recently used, and in chains by hash.
	nodes []pageNode
	heads []int32
	mask  uint64
	used  int
	first int32
	least int32
}

type pageNode struct {
	page       uint64
	known      loop.Time // when it has been fetched
	prev, next int32     // by use
	chain      int32     // by hash
}

const nobody = -1

// newTranslator returns nil where everything hits.
func newTranslator(t *Translate) *translator {
	if t.Entries == 0 {
		return nil
	}
	size := 1 << bits.Len(uint(t.Entries)) // more heads than entries
	r := &translator{
		shift: uint(bits.TrailingZeros(uint(t.Page))), miss: t.Miss, each: t.Miss / time.Duration(max(t.Parallel, 1)),
		nodes: make([]pageNode, t.Entries), heads: make([]int32, size), mask: uint64(size - 1), first: nobody, least: nobody,
	}
	for i := range r.heads {
		r.heads[i] = nobody
	}
	return r
}

// at is when the translation of n bytes from an address on is known, asked at a time.
func (r *translator) at(now loop.Time, addr uint64, n int) loop.Time {
	ready := now
	for page, end := addr>>r.shift, (addr+uint64(max(n, 1))-1)>>r.shift; page <= end; page++ {
		hit := r.first != nobody && r.nodes[r.first].page == page || r.touch(page)
		n := &r.nodes[r.first]
		if hit {
			r.hits++
		} else {
			r.misses++
			n.known = r.walker.occupy(now, r.each).Add(r.miss)
		}
		ready = max(ready, n.known)
	}
	return ready
}

// touch makes a page the most recently used and says whether it was in the cache.
func (r *translator) touch(page uint64) bool {
	h := &r.heads[mix64(page)&r.mask]
	for i := *h; i != nobody; i = r.nodes[i].chain {
		if r.nodes[i].page == page {
			if i != r.first {
				r.unlink(i)
				r.front(i)
			}
			return true
		}
	}
	i := int32(r.used)
	if r.used < len(r.nodes) {
		r.used++
	} else {
		i = r.least
		r.unlink(i)
		r.unchain(i)
	}
	r.nodes[i].page, r.nodes[i].chain = page, *h
	*h = i
	r.front(i)
	return false
}

func (r *translator) unlink(i int32) {
	n := &r.nodes[i]
	if n.prev == nobody {
		r.first = n.next
	} else {
		r.nodes[n.prev].next = n.next
	}
	if n.next == nobody {
		r.least = n.prev
	} else {
		r.nodes[n.next].prev = n.prev
	}
}

func (r *translator) front(i int32) {
	n := &r.nodes[i]
	n.prev, n.next = nobody, r.first
	if r.first == nobody {
		r.least = i
	} else {
		r.nodes[r.first].prev = i
	}
	r.first = i
}

func (r *translator) unchain(i int32) {
	at := &r.heads[mix64(r.nodes[i].page)&r.mask]
	for *at != i {
		at = &r.nodes[*at].chain
	}
	*at = r.nodes[i].chain
}

// mix64 is SplitMix64's finaliser (variant 13 of Stafford's).
func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
