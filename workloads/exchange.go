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
	loop.Cross(from, to, from.Now().Add(x.LookAhead), fn)
}

// wire is a one-way stream of small notes from one loop to another, in order. In its steady
// state it allocates nothing.
//
// In real time one post serves all notes that are on their way. In virtual time each note is an event of its own:
// whether another is on its way depends there on which of two cores is faster.
type wire[T any] struct {
	virtual   bool
	from, to  loop.Loop
	lookAhead time.Duration
	handle    func(T) // on the loop to

	mu     sync.Mutex
	sent   []dated[T]
	taken  int // of sent, in virtual time
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
	_, virtual := to.(*loop.Node)
	w := &wire[T]{virtual: virtual, from: from, to: to, lookAhead: x.LookAhead, handle: handle}
	w.fetch = w.take
	if virtual {
		w.fetch = w.takeOne
	}
	w.timer.Fire = w.deliver
	return w
}

// send must be called on the loop from.
func (w *wire[T]) send(note T) {
	at := w.from.Now().Add(w.lookAhead)
	w.mu.Lock()
	w.sent = append(w.sent, dated[T]{at, note})
	if w.virtual {
		w.mu.Unlock()
		loop.Cross(w.from, w.to, at, w.fetch)
		return
	}
	post := !w.posted
	w.posted = true
	w.mu.Unlock()
	if post {
		w.to.Post(w.fetch)
	}
}

// takeOne handles the note that is due.
func (w *wire[T]) takeOne() {
	w.mu.Lock()
	note := w.sent[w.taken].note
	w.taken++
	if w.taken == len(w.sent) {
		w.sent, w.taken = w.sent[:0], 0
	} else if w.taken >= 64 && 2*w.taken >= len(w.sent) {
		w.sent = w.sent[:copy(w.sent, w.sent[w.taken:])]
		w.taken = 0
	}
	w.mu.Unlock()
	w.handle(note)
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
		if at := w.inbox[w.next].at; w.lookAhead > 0 && at > w.to.Now() {
			w.to.Arm(&w.timer, at)
			return
		}
		note := w.inbox[w.next].note
		w.next++
		w.handle(note)
	}
}
