package testbed

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Progress is told how far a run has come. Its methods may be called from any goroutine.
type Progress interface {
	// Step begins a part of the run; the part before it is over.
	Step(text string)
	// Status replaces the line that says how the part is going.
	Status(text string)
	// Note says something that stays.
	Note(text string)
}

// Silent is a Progress that shows nothing.
type Silent struct{}

// Step does nothing.
func (Silent) Step(string) {}

// Status does nothing.
func (Silent) Status(string) {}

// Note does nothing.
func (Silent) Note(string) {}

// Plain lines begin with these, so that a run's watcher can tell them apart.
const (
	stepMark   = "» "
	statusMark = "… "
	noteMark   = "  "
)

// Lines is a Progress for logs and pipes: a line for every step and note, and a status now
// and then.
type Lines struct {
	mu    sync.Mutex
	w     io.Writer
	every time.Duration
	last  time.Time
}

// NewLines writes to w, a status no more often than every so often. An error of w is nobody's
// business: the run goes on.
func NewLines(w io.Writer, every time.Duration) *Lines { return &Lines{w: w, every: every} }

// Step writes a line.
func (l *Lines) Step(text string) { l.write(stepMark, text) }

// Note writes a line.
func (l *Lines) Note(text string) { l.write(noteMark, text) }

// Status writes a line unless another was written a moment ago.
func (l *Lines) Status(text string) {
	l.mu.Lock()
	early := time.Since(l.last) < l.every
	if !early {
		l.last = time.Now()
	}
	l.mu.Unlock()
	if !early {
		l.write(statusMark, text)
	}
}

func (l *Lines) write(mark, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(l.w, mark+strings.ReplaceAll(text, "\n", "\n    "))
}

// Terminal is a Progress for a terminal: one live line with the step, its time and its status;
// notes scroll away above it. Close clears the live line.
type Terminal struct {
	mu     sync.Mutex
	w      io.Writer
	width  func() int
	step   string
	status string
	since  time.Time
	tick   *time.Ticker
	quit   chan struct{}
	ended  chan struct{}
}

// NewTerminal draws on w, a terminal of width columns.
func NewTerminal(w io.Writer, width func() int) *Terminal {
	t := &Terminal{w: w, width: width, tick: time.NewTicker(time.Second), quit: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(t.ended)
		for {
			select {
			case <-t.quit:
				return
			case <-t.tick.C:
				t.mu.Lock()
				t.draw()
				t.mu.Unlock()
			}
		}
	}()
	return t
}

// Step turns the last step into a line that stays, with its time, and begins another.
func (t *Terminal) Step(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle()
	t.step, t.status, t.since = text, "", time.Now()
	t.draw()
}

// Status changes the live line.
func (t *Terminal) Status(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status = text
	t.draw()
}

// Note writes a line above the live one.
func (t *Terminal) Note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.w, "\r\x1b[K  %s\n", text)
	t.draw()
}

// Close ends the last step and leaves the terminal clean.
func (t *Terminal) Close() {
	t.tick.Stop()
	close(t.quit)
	<-t.ended
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle()
}

func (t *Terminal) settle() {
	if t.step != "" {
		fmt.Fprintf(t.w, "\r\x1b[K\x1b[32m✓\x1b[0m %s \x1b[2m%.1f s\x1b[0m\n", t.step, time.Since(t.since).Seconds())
	}
	t.step = ""
}

func (t *Terminal) draw() {
	if t.step == "" {
		return
	}
	line := fmt.Sprintf("» %s  %.0f s", t.step, time.Since(t.since).Seconds())
	if t.status != "" {
		line += "  " + t.status
	}
	if r, n := []rune(line), t.width(); n > 1 && len(r) >= n {
		line = string(r[:n-2]) + "…"
	}
	fmt.Fprintf(t.w, "\r\x1b[K%s", line)
}
