package loop

import "time"

// Source is input of a real loop's own besides posts, such as sockets. The loop waits in it
// instead of sleeping. All but Wake is called on the loop's goroutine.
//
// A loop with a source catches up: of timers that are due, and of input that has come in, each sees as Now its own
// time, in order, and timers that they arm for up to the present follow at once. Posts come
// after that, and see the present as it was before. So what a loop does late it does as it would have in time; a port that
// sends a frame every 300 ns needn't be woken for each.
type Source interface {
	// Wait returns once there is input, Wake was called, or limit of wall time is over; with a negative limit the
	// time never is. It may return for nothing.
	Wait(limit time.Duration)
	// Gather looks for what has come in. The loop has read the clock right before: what is not seen came later than
	// that, and so after what the loop does next.
	Gather()
	// Next is when the input that is next came in, or will have come in; false: there is none.
	Next() (at Time, ok bool)
	// Handle handles that input.
	Handle()
	// End is called last, when the loop is closed.
	End()
	// Wake ends a Wait: the one under way, or the next. Any goroutine may call it.
	Wake()
}

func (r *Real) runWithSource() {
	defer r.source.End()
	for {
		r.source.Wait(r.idle())
		start := time.Since(r.epoch)
		r.source.Gather()
		r.catchUp(start)
		r.ran(start)
		if closing := r.runPosted(); closing {
			return
		}
	}
}

// mostAtOnce is how many timers and inputs are caught up with before the source may wait again, where it also sends, and posts
// get their turn.
const mostAtOnce = 512

// catchUp fires the timers that were due, and handles the input that had come in, by a wall time since the epoch, each at its own
// time.
func (r *Real) catchUp(until time.Duration) {
	present := Time(r.dilation.Fabric(until))
	in, some := r.source.Next()
	for range mostAtOnce {
		due := r.timers.len() > 0 && r.timers.heap[0].at <= present
		switch {
		case some && in <= present && (!due || in < r.timers.heap[0].at):
			r.now = max(r.now, in)
			r.source.Handle()
			in, some = r.source.Next()
		case due:
			at := r.timers.heap[0].at
			t := r.timers.pop()
			r.expired(t)
			if !t.past && at >= r.back {
				r.stats.late.add(until - r.dilation.Wall(Duration(at)))
			}
			r.now = max(r.now, at)
			t.run()
		default:
			r.now = present
			return
		}
	}
}
