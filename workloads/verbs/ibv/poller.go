//go:build ibv && linux && cgo

package ibv

import (
	"cmp"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// poller waits for events of all open devices in one goroutine. Its epoll descriptor is itself
// waited for by Go's own poller: no thread blocks, and the thread that Go's poller wakes goes
// on with the loop's goroutine. A thread of its own would hand each event over to another one,
// which takes milliseconds when Go's monitor has to take its processor back.
type poller struct {
	epoll *os.File
	conn  syscall.RawConn
	ended chan struct{}

	closing atomic.Bool // the descriptor is being closed, which ends the goroutine

	mu      sync.Mutex
	sources map[int32]func() // what to do when a descriptor is readable; runs under mu
}

// shared is the process's poller while any device is open.
var shared struct {
	mu    sync.Mutex
	p     *poller
	users int
}

// watch calls the functions when their descriptors, which must not block, are readable.
// The functions run on the poller's goroutine and read until there is nothing left.
func watch(sources map[int32]func()) error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.p == nil {
		p, err := newPoller()
		if err != nil {
			return err
		}
		shared.p = p
	}
	shared.users++
	if err := shared.p.add(sources); err != nil {
		shared.p.remove(sources)
		release()
		return err
	}
	return nil
}

// unwatch returns when the functions neither run nor will run again.
func unwatch(sources map[int32]func()) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.p.remove(sources)
	release()
}

func release() {
	if shared.users--; shared.users == 0 {
		shared.p.close()
		shared.p = nil
	}
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll descriptor: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make epoll descriptor non-blocking: %w", err)
	}
	p := &poller{epoll: os.NewFile(uintptr(fd), "epoll of RDMA events"), ended: make(chan struct{}), sources: map[int32]func(){}}
	if p.conn, err = p.epoll.SyscallConn(); err != nil {
		p.epoll.Close()
		return nil, fmt.Errorf("wait for epoll descriptor: %w", err)
	}
	go p.run()
	return p, nil
}

func (p *poller) ctl(op int, fd int32) error {
	var err error
	cerr := p.conn.Control(func(epoll uintptr) {
		err = unix.EpollCtl(int(epoll), op, int(fd), &unix.EpollEvent{Events: unix.EPOLLIN, Fd: fd})
	})
	if err = cmp.Or(cerr, err); err != nil {
		return fmt.Errorf("watch descriptor %d: %w", fd, err)
	}
	return nil
}

func (p *poller) add(sources map[int32]func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for fd, ready := range sources {
		if err := p.ctl(unix.EPOLL_CTL_ADD, fd); err != nil {
			return err
		}
		p.sources[fd] = ready
	}
	return nil
}

func (p *poller) remove(sources map[int32]func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for fd := range sources {
		if _, ok := p.sources[fd]; ok {
			// It is still open, so this can only fail if the kernel never knew it.
			_ = p.ctl(unix.EPOLL_CTL_DEL, fd)
			delete(p.sources, fd)
		}
	}
}

func (p *poller) close() {
	p.closing.Store(true)
	p.epoll.Close()
	<-p.ended
}

func (p *poller) run() {
	defer close(p.ended)
	var events [64]unix.EpollEvent
	err := p.conn.Read(func(epoll uintptr) (stop bool) {
		for {
			n, err := unix.EpollWait(int(epoll), events[:], 0)
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				panic(fmt.Sprintf("ibv: wait for events: %v", err)) // the descriptor is ours: a bug
			}
			if n == 0 {
				return false // wait for the descriptor to become readable, and come back
			}
			p.mu.Lock()
			for _, e := range events[:n] {
				if ready := p.sources[e.Fd]; ready != nil {
					ready()
				}
			}
			p.mu.Unlock()
		}
	})
	if !p.closing.Load() {
		panic(fmt.Sprintf("ibv: wait for events: %v", err))
	}
}
