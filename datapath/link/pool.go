package link

import "github.com/rocebed/rocebed/datapath/roce"

// Pool gives out frames and takes them back, so that a steady state allocates nothing. It is
// for one goroutine: what runs there shares it.
//
// Frames come back last in, first out, since the last is still in the cache. They lie in
// batches, which Balance moves from one pool to another as a whole.
type Pool struct {
	free    *Frame // the batch in use, chained by next
	n       int    // frames in it
	batches []batch
	count   int // in free and batches
	made    uint64
}

type batch struct {
	first *Frame
	n     int
}

// chunk is how many frames are made at once; a batch has up to twice as many.
const chunk = 64

// Get gives a frame whose hot fields are zero; Packet is as its last user left it.
func (p *Pool) Get() *Frame {
	if p.free == nil {
		p.refill()
	}
	f := p.free
	p.free = f.next
	p.n--
	p.count--
	f.next = nil
	return f
}

func (p *Pool) refill() {
	if last := len(p.batches) - 1; last >= 0 {
		p.free, p.n = p.batches[last].first, p.batches[last].n
		p.batches = p.batches[:last]
		return
	}
	fs := make([]Frame, chunk)
	for i := range fs {
		fs[i].next, p.free = p.free, &fs[i]
	}
	p.n = chunk
	p.count += chunk
	p.made += chunk
}

// Put takes a frame back. Nothing may hold it or what it refers to afterwards.
func (p *Pool) Put(f *Frame) {
	f.Len, f.Dst, f.Flow, f.Port, f.Kind, f.TrafficClass, f.TTL, f.Priority, f.Tag = 0, 0, 0, 0, 0, 0, 0, 0, 0
	f.Damaged = false
	f.Packet.Payload, f.Content, f.to = nil, f.Content[:0], nil
	if f.Bytes != nil {
		f.Bytes, f.View = nil, roce.View{}
	}
	if p.n == 2*chunk {
		p.batches = append(p.batches, batch{p.free, p.n})
		p.free, p.n = nil, 0
	}
	f.next, p.free = p.free, f
	p.n++
	p.count++
}

// Made is how many frames were ever made here; Idle how many lie here now.
func (p *Pool) Made() uint64 { return p.made }

// Idle is how many frames lie here now.
func (p *Pool) Idle() int { return p.count }

// Balance evens out pools between which frames wander, when no one uses them: else one would
// make more for ever and another never part with any. It moves whole batches, and costs nothing
// where there is nothing to move.
func Balance(pools []*Pool) {
	if len(pools) < 2 {
		return
	}
	for {
		most, least := pools[0], pools[0]
		for _, p := range pools[1:] {
			if len(p.batches) > len(most.batches) {
				most = p
			}
			if len(p.batches) < len(least.batches) {
				least = p
			}
		}
		last := len(most.batches) - 1
		if last-len(least.batches) < 1 {
			return
		}
		b := most.batches[last]
		most.batches[last] = batch{}
		most.batches = most.batches[:last]
		least.batches = append(least.batches, b)
		most.count -= b.n
		least.count += b.n
	}
}
