package loop

import "time"

// Source is input of a real loop's own besides posts, such as sockets. The loop waits in it
// instead of sleeping. All but Wake is called on the loop's goroutine.
//
// A loop with a source catches up: of timers that are due, each sees as Now its own time, and those that
// they arm for up to the present follow at once, before input and posts, which see the present as
// it was before the timers. So what a loop does late it does as it would have in time; a port that sends a frame
// every 300 ns needn't be woken for each.
type Source interface {
	// Wait returns once there is something to handle, Wake was called, or limit of wall time is over;
	// with a negative limit the time never is. It may return for nothing.
	Wait(limit time.Duration)
	// Handle handles what there is; it runs after each Wait, as a callback does.
	Handle()
	// Wake ends a Wait: the one under way, or the next. Any goroutine may call it.
	Wake()
}

func (r *Real) runWithSource() {
	for {
		r.source.Wait(r.idle())
		start := time.Since(r.epoch)
		r.catchUp(start)
		r.source.Handle()
		r.ran(start)
		if closing := r.runPosted(); closing {
			return
		}
	}
}

// mostAtOnce is how many timers are caught up with before input and posts get their turn.
const mostAtOnce = 4096

// catchUp fires the timers that were due by a wall time since the epoch, each at its own time. Those that are armed
// meanwhile for a time that has passed already wait for the next round.
func (r *Real) catchUp(until time.Duration) {
	last, present := r.seq, Time(r.dilation.Fabric(until))
	for range mostAtOnce {
		if r.timers.len() == 0 || r.timers.heap[0].at > present {
			r.now = present
			return
		}
		top := &r.timers.heap[0]
		at := top.at
		if at <= r.now && top.seq > last {
			r.now = present
			return
		}
		t := r.timers.pop()
		if !t.past {
			r.stats.late.add(until - r.dilation.Wall(Duration(at)))
		}
		r.now = max(r.now, at)
		t.run()
	}
}
