//go:build linux

package agent

import (
	"container/heap"
	"time"
)

// dueFlows is a heap of flows by when they are looked at.
type dueFlows []*flow

func (d *dueFlows) set(f *flow, at time.Duration) {
	f.at = at
	if f.place >= 0 {
		heap.Fix(d, f.place)
		return
	}
	heap.Push(d, f)
}

func (d *dueFlows) remove(f *flow) {
	if f.place >= 0 {
		heap.Remove(d, f.place)
	}
}

func (d dueFlows) Len() int           { return len(d) }
func (d dueFlows) Less(i, j int) bool { return d[i].at < d[j].at }
func (d dueFlows) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = i, j
}
func (d *dueFlows) Push(x any) {
	f := x.(*flow)
	f.place = len(*d)
	*d = append(*d, f)
}
func (d *dueFlows) Pop() any {
	last := len(*d) - 1
	f := (*d)[last]
	(*d)[last] = nil
	f.place = -1
	*d = (*d)[:last]
	return f
}
