//go:build linux

package packet

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// thread is the thread that a node's goroutine has for itself, and how it was before.
//
// Where the process may choose, a thread that has little to do runs before all ordinary ones, as soon as it is woken (SCHED_FIFO);
// of others a busy machine makes it wait for milliseconds, whatever their niceness. A thread that has much to do, in itself or because the
// process has, only runs before others of its kind and for short spells: it must not keep the machine from everything else.
type thread struct {
	claimed bool
	attr    *unix.SchedAttr
	cpus    unix.CPUSet
	slack   int

	refused bool // the process may not choose
	urgent  bool
	since   time.Time     // of the review before
	own     time.Duration // processor time of the thread then, and of the process
	all     time.Duration
}

const (
	// A slice that one may choose since Linux 6.12, and which those before ignore.
	niceness = -15
	slice    = 200 * time.Microsecond
	// How often a thread is reviewed, and up to which shares of a processor, and of all that there are, it and the process have
	// little to do.
	reviewEvery = 50 * time.Millisecond
	littleOwn   = 0.4
	littleAll   = 0.6
)

// schedule makes the thread urgent or not.
func (t *thread) schedule(urgent bool) {
	if t.refused {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // which the kernel may else stretch sleeps by, 50 µs
		return
	}
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: niceness, Runtime: uint64(slice)}
	if urgent {
		attr = unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	}
	switch unix.SchedSetAttr(0, &attr, 0) {
	case nil:
		t.urgent = urgent
	default: // a control group may forbid the one alone
		t.urgent, t.refused = false, !urgent
	}
	if !t.urgent { // the kernel stretches the sleeps of others than these by 50 µs else
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	}
}

// review looks at what the thread and the process have used since the review before.
func (t *thread) review() {
	now := time.Now()
	took := now.Sub(t.since)
	if t.refused || took < reviewEvery {
		return
	}
	own, all := processorTime(unix.CLOCK_THREAD_CPUTIME_ID), processorTime(unix.CLOCK_PROCESS_CPUTIME_ID)
	little := float64(own-t.own) < littleOwn*float64(took) && float64(all-t.all) < littleAll*float64(took)*float64(runtime.NumCPU())
	t.since, t.own, t.all = now, own, all
	if little != t.urgent {
		t.schedule(little)
	}
}

func processorTime(clock int32) time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(clock, &ts)
	return time.Duration(ts.Nano())
}

// claim keeps the goroutine on this thread, the thread on a CPU (negative: any), and its sleeps exact: the kernel may else
// stretch them by 50 µs to save wakings. Claiming again does nothing.
func (t *thread) claim(name string, cpu int) (err error) {
	if t.claimed {
		return nil
	}
	runtime.LockOSThread()
	t.claimed = true
	fail := func(what string, err error) error { return fmt.Errorf("%s: its thread: %s: %w", name, what, err) }
	if t.attr, err = unix.SchedGetAttr(0, 0); err != nil {
		return fail("read priority", err)
	}
	if err := unix.SchedGetaffinity(0, &t.cpus); err != nil {
		return fail("read CPUs", err)
	}
	if t.slack, err = unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil {
		return fail("read timer slack", err)
	}
	t.schedule(true)
	if !t.urgent {
		t.schedule(false)
	}
	t.since, t.own, t.all = time.Now(), processorTime(unix.CLOCK_THREAD_CPUTIME_ID), processorTime(unix.CLOCK_PROCESS_CPUTIME_ID)
	if cpu >= 0 {
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fail(fmt.Sprintf("stay on CPU %d", cpu), err)
		}
	}
	return nil
}

// release gives the thread back as it was. One that can't be as it was ends with its goroutine.
func (t *thread) release() {
	if !t.claimed {
		return
	}
	t.claimed = false
	if t.attr == nil || unix.SchedSetAttr(0, t.attr, 0) != nil || unix.SchedSetaffinity(0, &t.cpus) != nil ||
		unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(t.slack), 0, 0, 0) != nil {
		return
	}
	runtime.UnlockOSThread()
}
