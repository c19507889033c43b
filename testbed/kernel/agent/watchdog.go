//go:build linux

package agent

import (
	"time"

	"github.com/rocebed/rocebed/testbed/kernel/engine"
)

// watchdog is a port's. It looks at the port a few times in each interval that it is to notice.
type watchdog struct {
	Watchdog
	next   time.Duration
	storms uint8            // priorities in a storm
	clear  [8]time.Duration // since when a stormed priority isn't paused; 0: it is
	seen   [8]uint64
}

// leastLook is the least time between two looks.
const leastLook = 5 * time.Millisecond

// look takes a reading of the port and says which priorities are to be taken out of their pause now; changed: not the same as before.
func (w *watchdog) look(now time.Duration, r *engine.Reading) (stormed uint8, changed bool) {
	before := w.storms
	for i := range r.Queues {
		q, bit := &r.Queues[i], uint8(1)<<i
		switch {
		case w.storms&bit == 0:
			if w.Detect > 0 && q.Paused && q.Packets > 0 && now-q.PausedSince >= w.Detect {
				w.storms |= bit
				w.seen[i]++
				w.clear[i] = 0
			}
		case q.Paused:
			w.clear[i] = 0
		case w.clear[i] == 0:
			w.clear[i] = now
		case now-w.clear[i] >= w.Restore:
			w.storms &^= bit
		}
	}
	if w.Detect == 0 {
		w.storms = 0
	}
	w.next = now + max(min(w.Detect, w.Restore)/4, leastLook)
	return w.storms, w.storms != before
}
