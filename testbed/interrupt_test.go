package testbed

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"
)

func TestATerminalThatIsClosedEndsARunAsAnInterruptDoesAndAReaderThatIsGoneDoesNot(t *testing.T) {
	for _, c := range []struct {
		signal syscall.Signal
		ends   bool
	}{{syscall.SIGINT, true}, {syscall.SIGTERM, true}, {syscall.SIGHUP, true}, {syscall.SIGPIPE, false}} {
		said := make(chan string, 1)
		ctx, stop := Interruptible(context.Background(), func(text string) { said <- text })
		if err := syscall.Kill(syscall.Getpid(), c.signal); err != nil {
			t.Fatal(err)
		}
		if !c.ends { // nor does it keep the next one from ending it
			if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), ErrInterrupted) || <-said == "" {
				t.Errorf("%v: %v", c.signal, context.Cause(ctx))
			}
		case <-time.After(time.Minute):
			t.Errorf("%v: nothing ended", c.signal)
		}
		stop()
	}
}
