package conformance

import (
	"fmt"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// asyncLog keeps a device's asynchronous events. It is owned by the device's loop.
type asyncLog struct {
	suite  *Suite
	dev    verbs.Device
	events []verbs.AsyncEvent
	wanted func(verbs.AsyncEvent) bool
	found  func()
}

func newAsyncLog(s *Suite, d verbs.Device) *asyncLog {
	l := &asyncLog{suite: s, dev: d}
	d.Loop().Post(func() {
		d.OnAsync(func(e verbs.AsyncEvent) {
			l.events = append(l.events, e)
			if l.wanted != nil && l.wanted(e) {
				l.wanted = nil
				l.found()
			}
		})
	})
	return l
}

// clear forgets the events so far.
func (l *asyncLog) clear(t T) {
	t.Helper()
	if err := l.suite.on(l.dev, func(done func()) { l.events = nil; done() }); err != nil {
		t.Fatalf("%s: %v", l.dev.Name(), err)
	}
}

// expect waits for an event since the last clear.
func (l *asyncLog) expect(t T, what verbs.AsyncEventType, match func(verbs.AsyncEvent) bool) {
	t.Helper()
	want := func(e verbs.AsyncEvent) bool { return e.Type == what && match(e) }
	err := l.suite.on(l.dev, func(done func()) {
		for _, e := range l.events {
			if want(e) {
				done()
				return
			}
		}
		l.wanted, l.found = want, done
	})
	if err != nil {
		t.Fatalf("%s: waiting for the event %v: %v; seen: %s", l.dev.Name(), what, err, l.seen())
	}
}

// count is how many events of a type have come since the last clear.
func (l *asyncLog) count(t T, what verbs.AsyncEventType) int {
	t.Helper()
	n := 0
	err := l.suite.on(l.dev, func(done func()) {
		for _, e := range l.events {
			if e.Type == what {
				n++
			}
		}
		done()
	})
	if err != nil {
		t.Fatalf("%s: %v", l.dev.Name(), err)
	}
	return n
}

func (l *asyncLog) seen() string {
	s := "no event"
	_ = l.suite.on(l.dev, func(done func()) {
		for i, e := range l.events {
			if i == 0 {
				s = ""
			}
			s += fmt.Sprintf("%v ", e.Type)
		}
		l.wanted = nil
		done()
	})
	return s
}
