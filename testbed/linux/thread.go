//go:build linux

package linux

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// A home is the network namespace that this process's threads belong in.
type home struct{ fd int }

func openHome() (home, error) {
	fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return home{}, fmt.Errorf("open this thread's network namespace: %w", err)
	}
	return home{fd}, nil
}

func (h home) close() { _ = unix.Close(h.fd) }

// away runs fn on an operating system thread of its own that may change its network namespace,
// and waits. Afterwards the thread is put back into h; one that can't be put back ends with its
// goroutine instead of serving others.
//
// A panic in fn, and a runtime.Goexit (which is how testing's FailNow and Ginkgo's Fail end a
// goroutine), arrive in the caller: a failed assertion inside behaves like one outside.
func (h home) away(fn func() error) error {
	type outcome struct {
		err      error
		panicked any
		exited   bool
	}
	done := make(chan outcome, 1)
	var work func(spare bool)
	work = func(spare bool) {
		runtime.LockOSThread()
		if spare && unix.Gettid() == unix.Getpid() {
			// The main thread never ends, so it must not be one that may have to: keep it
			// busy here while another does the work.
			inner := make(chan struct{})
			go func() { defer close(inner); work(false) }()
			<-inner
			runtime.UnlockOSThread()
			return
		}
		o := outcome{exited: true}
		defer func() {
			if p := recover(); p != nil {
				o.panicked, o.exited = p, false
			}
			if unix.Setns(h.fd, unix.CLONE_NEWNET) == nil {
				runtime.UnlockOSThread()
			} else {
				o.err = fmt.Errorf("a thread could not return to its network namespace and was ended (first error: %w)", orNone(o.err))
			}
			done <- o
		}()
		o.err = fn()
		o.exited = false
	}
	go work(true)
	o := <-done
	switch {
	case o.panicked != nil:
		panic(o.panicked)
	case o.exited:
		runtime.Goexit()
	}
	return o.err
}

func orNone(err error) error {
	if err == nil {
		return fmt.Errorf("none")
	}
	return err
}
