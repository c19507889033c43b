package conformance

import (
	"fmt"
	"strings"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// pollEvery is how often a queue is polled whose events are not at hand, in fabric time.
const pollEvery = 20 * time.Microsecond

// queue is a CQ whose completions are kept as they come. What it holds is owned by the loop.
type queue struct {
	h      *half
	name   string
	cq     verbs.CQ
	got    []verbs.WC
	events int // how often the CQ's event came
	want   int
	ready  func()
	manual bool // events are counted and nothing is polled or rearmed
}

// newQueue makes a CQ that is armed and polled by its events.
func newQueue(h *half, name string, depth int, manual bool) *queue {
	q := &queue{h: h, name: name, manual: manual}
	q.cq = must(h, "create CQ", func(done func(verbs.CQ, error)) { h.dev.CreateCQ(depth, q.onEvent, done) })
	if !manual {
		h.now("request notification", func() error { return q.cq.ReqNotify(false) })
	}
	return q
}

func (q *queue) onEvent(verbs.CQ) {
	q.events++
	if q.manual {
		q.wake()
		return
	}
	q.drain()
	// What came between the last poll and the request makes no event: poll again.
	if err := q.cq.ReqNotify(false); err == nil {
		q.drain()
	}
	q.wake()
}

func (q *queue) wake() {
	have := len(q.got)
	if q.manual {
		have = q.events
	}
	if q.ready != nil && have >= q.want {
		ready := q.ready
		q.ready = nil
		ready()
	}
}

func (q *queue) drain() {
	var wcs [7]verbs.WC // odd, so that batches end in all places
	for {
		n := q.cq.Poll(wcs[:])
		q.got = append(q.got, wcs[:n]...)
		if n < len(wcs) {
			return
		}
	}
}

// take waits for n completions and takes them.
func (q *queue) take(n int) []verbs.WC {
	q.h.t.Helper()
	var out []verbs.WC
	gaveUp := false
	err := q.h.suite.on(q.h.dev, func(done func()) {
		finish := func() {
			out = append(out, q.got[:n]...)
			q.got = append(q.got[:0], q.got[n:]...)
			done()
		}
		q.drain()
		if !q.manual {
			q.want, q.ready = n, finish
			q.wake()
			return
		}
		// Nobody but the case arms a manual queue, so it is polled.
		var again func()
		again = func() {
			if q.drain(); len(q.got) >= n {
				finish()
			} else if !gaveUp {
				loop.After(q.h.dev.Loop(), pollEvery, again)
			}
		}
		again()
	})
	if err != nil {
		q.h.now("give up", func() error { gaveUp = true; return nil })
		q.h.t.Fatalf("%s: waiting for %d completions: %v; have %s", q, n, err, q.holds())
	}
	return out
}

// event waits until n events have come in all.
func (q *queue) event(n int) {
	q.h.t.Helper()
	err := q.h.suite.on(q.h.dev, func(done func()) {
		q.want, q.ready = n, done
		q.wake()
	})
	if err != nil {
		q.h.t.Fatalf("%s: waiting for %d events: %v", q, n, err)
	}
}

// one waits for one completion, which must have an ID and a status.
func (q *queue) one(id uint64, status verbs.Status) verbs.WC {
	q.h.t.Helper()
	wc := q.take(1)[0]
	if wc.ID != id || wc.Status != status {
		q.h.t.Fatalf("%s: completion %d is %v (vendor %#x), want %d %v", q, wc.ID, wc.Status, wc.VendorErr, id, status)
	}
	return wc
}

// none asserts that there is no completion. Call it after something that came later.
func (q *queue) none(what string) {
	q.h.t.Helper()
	q.h.now("poll", func() error { q.drain(); return nil })
	if s := q.holds(); s != "" {
		q.h.t.Errorf("%s: %s: there are completions: %s", q, what, s)
	}
}

// eventCount is how many events have come.
func (q *queue) eventCount() int {
	n := 0
	q.h.now("count events", func() error { n = q.events; return nil })
	return n
}

func (q *queue) holds() string {
	var b strings.Builder
	_ = q.h.suite.on(q.h.dev, func(done func()) {
		q.ready = nil
		for _, wc := range q.got {
			fmt.Fprintf(&b, "%d %v; ", wc.ID, wc.Status)
		}
		done()
	})
	return b.String()
}

func (q *queue) String() string { return fmt.Sprintf("%s: %s CQ", q.h.dev.Name(), q.name) }

// takeAll takes what is there.
func (q *queue) takeAll() []verbs.WC {
	q.h.t.Helper()
	var out []verbs.WC
	q.h.now("poll", func() error {
		q.drain()
		out = append(out, q.got...)
		q.got = q.got[:0]
		return nil
	})
	return out
}

// takeID waits for the success of one receive and leaves the others where they are.
func (q *queue) takeID(id uint64) {
	q.h.t.Helper()
	for n := 1; ; n++ {
		wcs := q.take(n)
		last := wcs[len(wcs)-1]
		rest := wcs[:len(wcs)-1]
		if last.ID != id {
			rest = wcs
		}
		q.h.now("put back", func() error { q.got = append(append([]verbs.WC{}, rest...), q.got...); return nil })
		if last.ID == id {
			if last.Status != verbs.Success {
				q.h.t.Fatalf("%s: completion %d is %v", q, id, last.Status)
			}
			return
		}
	}
}
