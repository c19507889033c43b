package testbed

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// ErrInterrupted is the cause of a context that a signal ended.
var ErrInterrupted = errors.New("a signal asked for the end")

// Interruptible is a context that SIGINT, SIGTERM and SIGHUP end. say explains what happens then;
// a second signal only explains again, because quitting amidst healing would leave a broken
// fabric behind; the third gives the signal its usual meaning back. Until then SIGPIPE, of an
// output that nobody reads any more, ends nothing. Call stop when done.
func Interruptible(parent context.Context, say func(string)) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 3)
	ending := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
	signal.Notify(signals, ending...)
	unread := make(chan os.Signal, 1) // never read: writing fails with EPIPE then
	signal.Notify(unread, syscall.SIGPIPE)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 1; ; n++ {
			select {
			case <-done:
				return
			case <-signals:
			}
			switch n {
			case 1:
				say("stopping: faults are healed and the fabric is taken down first")
				cancel(ErrInterrupted)
			case 2:
				say("still healing and taking down, which ends by itself; once more quits at once, and then `rocebed clean` removes what is left")
				signal.Reset(ending...)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(unread)
		close(done)
		<-ended
		cancel(nil)
	}
}
