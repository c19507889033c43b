package guest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Guest is a running microVM. Its methods may be called from many goroutines at once.
type Guest struct {
	// Report says how it came up.
	Report Report

	conn    ssh.Conn
	clock   *clockWatch   // nil for a guest that another process holds
	vm      *machine      // nil for a guest that another process holds
	failing chan struct{} // closed when failure is set
	once    sync.Once
	failure error
	stop    context.CancelFunc // ends the watchers
	watched sync.WaitGroup
}

// Done is closed when the guest has ended, whatever the cause; Err then says which.
func (g *Guest) Done() <-chan struct{} { return g.failing }

// Err is nil while the guest lives, then a *Failure, or ErrClosed after Close.
func (g *Guest) Err() error {
	select {
	case <-g.failing:
		return g.failure
	default:
		return nil
	}
}

// Console returns up to n of the last lines that the guest's kernel printed.
func (g *Guest) Console(n int) []string {
	if g.vm == nil {
		return nil
	}
	return g.vm.console.lines(n)
}

// PID is the process id of the guest's VMM on the machine; 0 for a guest that was joined.
func (g *Guest) PID() int {
	if g.vm == nil {
		return 0
	}
	return g.vm.pid
}

// Close ends the guest: at once, since nothing in it is worth keeping. What still runs
// in it ends with ErrClosed. It returns when no process of it is left.
func (g *Guest) Close() error {
	g.end(ErrClosed)
	g.watched.Wait()
	return nil
}

// end settles why the guest ended, the first time, and ends what is left of it.
func (g *Guest) end(why error) {
	g.once.Do(func() {
		g.failure = why
		g.stop()
		g.conn.Close()
		if g.vm != nil {
			g.vm.kill()
			<-g.vm.exited
		}
		close(g.failing) // nobody hears of the end before it has come
	})
}

// lastWords is how long QEMU may take to end, and so to say why, after the connection
// has broken: a busy machine needs seconds to take a guest's memory back.
const lastWords = 10 * time.Second

// reason is why a call on the guest broke off.
func (g *Guest) reason() error {
	select {
	case <-g.failing:
		return g.failure
	case <-time.After(2 * lastWords):
		return fmt.Errorf("%w: its connection broke", ErrDied)
	}
}

// watch ends the guest when QEMU ends, and when the guest stops answering. What it asks for is
// the guest's time: see Clock.
func (g *Guest) watch(ctx context.Context, hangAfter time.Duration) {
	g.watched.Add(2)
	go func() {
		defer g.watched.Done()
		<-g.vm.exited
		g.end(g.vm.failure())
	}()
	go func() {
		defer g.watched.Done()
		for {
			answered := make(chan error, 1)
			go func() {
				r, err := g.clock.read(g.conn)
				if err == nil {
					g.clock.add(r)
				}
				answered <- err
			}()
			select {
			case err := <-answered:
				if err != nil {
					// The connection is gone; QEMU's end, if it comes, says why.
					select {
					case <-g.vm.exited:
					case <-ctx.Done():
					case <-time.After(lastWords):
						g.end(g.vm.fail(ErrDied, "its connection broke: "+err.Error()))
					}
					return
				}
			case <-time.After(hangAfter):
				g.end(g.vm.fail(ErrHung, fmt.Sprintf("no answer for %v, so it was killed", hangAfter)))
				return
			case <-ctx.Done():
				return
			}
			select {
			case <-time.After(hangAfter / 4):
			case <-ctx.Done():
				return
			}
		}
	}()
}
