//go:build ibv && linux && cgo

package ibv

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// poller waits for events of all open devices in one goroutine and one thread.
type poller struct {
	epoll, stop int
	ended       chan struct{}

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
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll descriptor: %w", err)
	}
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(epoll)
		return nil, fmt.Errorf("create event descriptor: %w", err)
	}
	p := &poller{epoll: epoll, stop: stop, ended: make(chan struct{}), sources: map[int32]func(){}}
	if err := p.ctl(unix.EPOLL_CTL_ADD, int32(stop)); err != nil {
		unix.Close(stop)
		unix.Close(epoll)
		return nil, err
	}
	go p.run()
	return p, nil
}

func (p *poller) ctl(op int, fd int32) error {
	if err := unix.EpollCtl(p.epoll, op, int(fd), &unix.EpollEvent{Events: unix.EPOLLIN, Fd: fd}); err != nil {
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
	one := [8]byte{1}
	_, _ = unix.Write(p.stop, one[:])
	<-p.ended
	unix.Close(p.stop)
	unix.Close(p.epoll)
}

func (p *poller) run() {
	defer close(p.ended)
	var events [64]unix.EpollEvent
	for {
		n, err := unix.EpollWait(p.epoll, events[:], -1)
		if err != nil && err != unix.EINTR {
			panic(fmt.Sprintf("ibv: wait for events: %v", err)) // the descriptor is ours: a bug
		}
		for _, e := range events[:max(n, 0)] {
			if e.Fd == int32(p.stop) {
				return
			}
			p.mu.Lock()
			if ready := p.sources[e.Fd]; ready != nil {
				ready()
			}
			p.mu.Unlock()
		}
	}
}
