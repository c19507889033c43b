package link

import "github.com/rocebed/rocebed/datapath/roce"

// Pool gives out frames and takes them back, so that a steady state allocates nothing. It is
// for one goroutine: what runs there shares it.
type Pool struct {
	free  *Frame
	count int // in free
	made  uint64
}

// chunk is how many frames are made at once.
const chunk = 64

// Get gives a frame whose hot fields are zero; Packet is as its last user left it.
func (p *Pool) Get() *Frame {
	if p.free == nil {
		p.grow()
	}
	f := p.free
	p.free = f.next
	p.count--
	f.next = nil
	return f
}

func (p *Pool) grow() {
	fs := make([]Frame, chunk)
	for i := range fs {
		f := &fs[i]
		f.next, p.free = p.free, f
	}
	p.count += chunk
	p.made += chunk
}

// Put takes a frame back. Nothing may hold it or what it refers to afterwards.
func (p *Pool) Put(f *Frame) {
	f.Len, f.Dst, f.Flow, f.Port, f.Kind, f.TrafficClass, f.TTL, f.Priority, f.Tag = 0, 0, 0, 0, 0, 0, 0, 0, 0
	f.Damaged = false
	f.Packet.Payload, f.Content, f.Bytes, f.to = nil, f.Content[:0], nil, nil
	f.View = roce.View{}
	f.next, p.free = p.free, f
	p.count++
}

// Made is how many frames were ever made here; Idle how many lie here now.
func (p *Pool) Made() uint64 { return p.made }

// Idle is how many frames lie here now.
func (p *Pool) Idle() int { return p.count }
