package workloads

import (
	"encoding/binary"
	"time"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// sharedWord is a counter that several flows add one to, on their common responder's NIC.
// It lives on the NIC's loop.
type sharedWord struct {
	nic  *nic
	mem  verbs.Memory
	mr   verbs.MR
	addr uint64
	rkey uint32
}

func (w *sharedWord) open(limit time.Duration, done func(error)) {
	within(w.nic.l, limit, portName(w.nic.Port)+": register the shared counter", func(done func(error)) {
		mem, err := w.nic.Device.AllocMemory(8, verbs.HostMemory)
		if err != nil {
			done(err)
			return
		}
		w.mem = mem
		w.nic.pd.RegMR(mem, 0, 8, verbs.LocalWrite|verbs.RemoteAtomic, func(mr verbs.MR, err error) {
			if err == nil {
				w.mr, w.addr, w.rkey = mr, mr.Addr(), mr.RKey()
			}
			done(err)
		})
	}, done)
}

// value is what the counter holds.
func (w *sharedWord) value() uint64 {
	if w.mem == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(w.mem.Bytes())
}

func (w *sharedWord) close(limit time.Duration, done func(error)) {
	var steps []step
	if w.mr != nil {
		steps = append(steps, step{portName(w.nic.Port) + ": deregister the shared counter", w.mr.Dereg})
	}
	if w.mem != nil {
		steps = append(steps, step{portName(w.nic.Port) + ": free the shared counter", func(done func(error)) { done(w.mem.Free()) }})
	}
	inOrder(w.nic.l, limit, steps, done)
}

// countedUp is the sum of mix64 over the values that n additions of one return, in whatever
// order, if each happens exactly once.
func countedUp(n uint64) (sum uint64) {
	for k := range n {
		sum += mix64(k)
	}
	return sum
}
