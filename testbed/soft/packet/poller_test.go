//go:build linux

package packet

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func newPoller(t *testing.T) *Poller {
	t.Helper()
	p, err := NewPoller("h1", -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Release()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestAWakeIsNeverLost(t *testing.T) {
	p := newPoller(t)
	const calls = 20_000
	acknowledged := make(chan struct{})
	go func() {
		for range calls {
			p.Wake()
			<-acknowledged
		}
	}()
	for range calls {
		// Without a limit: a call that got lost would hang here.
		woken := make(chan struct{})
		timer := time.AfterFunc(patience, func() {
			select {
			case <-woken:
			default:
				panic("a wake was lost")
			}
		})
		if err := p.Wait(-1); err != nil {
			t.Fatal(err)
		}
		close(woken)
		timer.Stop()
		acknowledged <- struct{}{}
	}
}

func TestAWaitIsOverInMicrosecondsAndNeverEarly(t *testing.T) {
	p := newPoller(t)
	if err := p.Wait(0); err != nil {
		t.Fatal(err)
	}
	const limit = 100 * time.Microsecond
	short := 0
	for range 200 {
		start := time.Now()
		if err := p.Wait(limit); err != nil {
			t.Fatal(err)
		}
		took := time.Since(start)
		if took < limit {
			t.Fatalf("a wait for %v took %v", limit, took)
		}
		if took < time.Millisecond { // what the runtime's own timers take at least
			short++
		}
	}
	if short == 0 {
		t.Errorf("none of 200 waits for %v took less than a millisecond", limit)
	}
}

func TestAReleasedThreadIsAsItWas(t *testing.T) {
	type state struct {
		nice  int32
		cpus  unix.CPUSet
		slack int
	}
	read := func() (s state) {
		attr, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.nice = attr.Nice
		s.slack, _ = unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		if err := unix.SchedGetaffinity(0, &s.cpus); err != nil {
			t.Fatal(err)
		}
		return s
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // nested: the thread stays this goroutine's after Release
		defer runtime.UnlockOSThread()
		before := read()
		p := newPoller(t)
		p.cpu = 0
		if err := p.Wait(0); err != nil {
			t.Error(err)
		}
		if during := read(); during.slack > 1 || during.cpus.Count() != 1 {
			t.Errorf("while it waits the thread has %d ns of slack and %d CPUs", during.slack, during.cpus.Count())
		}
		p.Release()
		if after := read(); after != before {
			t.Errorf("the thread is %+v, was %+v", after, before)
		}
	}()
	<-done
}
