package workloads

import (
	"sync"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

// Exchange carries what two hosts of a job would tell each other out of band: queue pair
// numbers, barriers, credits. A message takes at least LookAhead of fabric time, and
// messages from one loop to another arrive in the order they were sent.
type Exchange struct {
	LookAhead time.Duration
}

// Send runs fn on the loop to. It must be called on the loop from.
func (x Exchange) Send(from, to loop.Loop, fn func()) {
	at := from.Now().Add(x.LookAhead)
	to.Post(func() { to.Arm(&loop.Timer{Fire: fn}, at) })
}

// wire is a one-way stream of small notes from one loop to another, in order. In its steady
// state it allocates nothing.
type wire[T any] struct {
	from, to  loop.Loop
	lookAhead time.Duration
	handle    func(T) // on the loop to

	mu     sync.Mutex
	sent   []dated[T]
	posted bool

	// Owned by the loop to.
	inbox []dated[T]
	next  int
	timer loop.Timer
	fetch func()
}

type dated[T any] struct {
	at   loop.Time
	note T
}

func newWire[T any](x Exchange, from, to loop.Loop, handle func(T)) *wire[T] {
	w := &wire[T]{from: from, to: to, lookAhead: x.LookAhead, handle: handle}
	w.fetch = w.take
	w.timer.Fire = w.deliver
	return w
}

// send must be called on the loop from.
func (w *wire[T]) send(note T) {
	w.mu.Lock()
	w.sent = append(w.sent, dated[T]{w.from.Now().Add(w.lookAhead), note})
	post := !w.posted
	w.posted = true
	w.mu.Unlock()
	if post {
		w.to.Post(w.fetch)
	}
}

// take moves what was sent to the loop's own inbox.
func (w *wire[T]) take() {
	if w.next == len(w.inbox) {
		w.inbox, w.next = w.inbox[:0], 0
	}
	w.mu.Lock()
	w.posted = false
	w.inbox = append(w.inbox, w.sent...)
	w.sent = w.sent[:0]
	w.mu.Unlock()
	w.deliver()
}

// deliver handles the notes that are due, and sets the timer for those that aren't.
func (w *wire[T]) deliver() {
	for w.next < len(w.inbox) {
		if at := w.inbox[w.next].at; at > w.to.Now() {
			w.to.Arm(&w.timer, at)
			return
		}
		note := w.inbox[w.next].note
		w.next++
		w.handle(note)
	}
}
