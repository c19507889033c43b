package packet

import "slices"

// Shelf keeps packets that are held until others have overtaken them. A packet counts for those that are held of its Flow when it
// goes on from the place: not when it is dropped or put on the shelf, but when it leaves it. Copies don't count.
type Shelf[T any] struct {
	held []held[T]
	last uint64
}

type held[T any] struct {
	id   uint64
	flow uint32
	left uint16
	item T
}

// Put keeps a packet until n packets of its flow have gone on, n at least 1. The number is for Take.
func (s *Shelf[T]) Put(flow uint32, n uint16, item T) (id uint64) {
	s.last++
	s.held = append(s.held, held[T]{s.last, flow, n, item})
	return s.last
}

// Pass tells that a packet of a flow has gone on. Those that are due go on right behind it, in the order in which they were put there;
// each of them counts for the others in turn.
func (s *Shelf[T]) Pass(flow uint32, release func(T)) {
	for passed := 1; passed > 0 && len(s.held) > 0; passed-- {
		for i := range s.held {
			if h := &s.held[i]; h.flow == flow && h.left > 0 {
				h.left--
			}
		}
		for i := 0; i < len(s.held); {
			if h := s.held[i]; h.flow == flow && h.left == 0 {
				s.held = slices.Delete(s.held, i, i+1)
				release(h.item)
				passed++
				continue
			}
			i++
		}
	}
}

// Take takes a packet whose time is over; false: it has gone on already.
func (s *Shelf[T]) Take(id uint64) (item T, ok bool) {
	for i, h := range s.held {
		if h.id == id {
			s.held = slices.Delete(s.held, i, i+1)
			return h.item, true
		}
	}
	return item, false
}

// Drain takes all packets, in the order in which they were put there.
func (s *Shelf[T]) Drain(release func(T)) {
	for _, h := range s.held {
		release(h.item)
	}
	clear(s.held)
	s.held = s.held[:0]
}

// Len is how many packets are held.
func (s *Shelf[T]) Len() int { return len(s.held) }
