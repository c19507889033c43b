package testbed

import (
	"slices"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
)

// gate has faults of the fabric that are due at time 0 in force before traffic starts. A queue pair that is killed at time 0 is to be at work.
func (t *traffic) gate(open func()) {
	t.time.loop().Post(func() {
		t.faults.strikeFirst(func(k faults.Kind) bool { return t.injectors.OfNodes(k) && k != faults.QPKill }, open)
	})
}

// strikeFirst applies the faults that are due at time 0, of those that may, before that time comes, and calls then once each is read back, or has
// failed: to bring a fault into force may take longer than the first packets are on their way. Only start lets one end by its schedule.
func (r *faultRun) strikeFirst(may func(faults.Kind) bool, then func()) {
	r.traffic = then
	for _, f := range r.all {
		turn, state := f.course.Turn(0)
		if state != faults.Due || turn.Start > 0 || r.started || r.ending || !may(f.spec.Kind) {
			continue
		}
		f.turn, f.first = turn, true
		r.tell(f, "planned", "to strike before the first packet", "")
	}
	for _, f := range r.all {
		if f.first {
			r.apply(f)
		}
	}
	r.letGo()
}

// letGo lets traffic start once no fault that strikes before it is on its way in, or out again.
func (r *faultRun) letGo() {
	if r.traffic == nil || slices.ContainsFunc(r.all, func(f *oneFault) bool { return f.first && (f.busy || f.healing) }) {
		return
	}
	then := r.traffic
	r.traffic = nil
	then()
}

// start plans every fault. The schedule counts from epoch.
func (r *faultRun) start(epoch loop.Time) {
	r.epoch, r.started = epoch, true
	r.dateEarly()
	for _, f := range r.all {
		f.zero = epoch
	}
	for _, f := range r.all {
		switch {
		case !f.inHand():
			r.plan(f)
		case !f.busy && !f.healing && !r.ending:
			r.armEnd(f)
		}
	}
}

// inHand says that it is in force, or on its way in or out.
func (f *oneFault) inHand() bool { return f.applied != nil || f.busy }

// dateEarly tells what happened before it was known when the workloads start.
func (r *faultRun) dateEarly() {
	before := r.epoch.Sub(0)
	for _, f := range r.all {
		for i := range f.strikes {
			s := &f.strikes[i]
			s.asked, s.applied = s.asked-before, s.applied-before
			if s.healed != faults.Forever {
				s.healed -= before
			}
		}
	}
	early := r.early
	r.early = nil
	for _, e := range early {
		e.At -= before
		r.event(e)
	}
}
