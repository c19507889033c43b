//go:build linux

package packet

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Poller waits for any of a node's sockets, for a time, and for Wake. All but Wake belongs to one
// goroutine, which the first Wait ties to its thread until Release.
type Poller struct {
	name    string
	epoll   int
	event   int // eventfd that Wake writes to while Wait sleeps
	cpu     int // that the thread stays on; negative: any
	sockets []*Socket
	state   atomic.Int32
	thread  thread
	hasty   bool // the last sleep was over before a nap is
	events  []unix.EpollEvent
	wants   []uint32 // what each socket is watched for
	last    int      // where a frame was seen last
}

// nap is for how long a poller doesn't let frames wake it when the last ones did so sooner: several come then, and their sender
// needn't wake anybody for each. It costs a tenth less processor time a frame where a processor is what there is too little of.
const nap = 100 * time.Microsecond

// The states of a poller.
const (
	awake int32 = iota
	asleep
	called // Wake was called since the last Wait
)

// NewPoller makes a poller whose thread stays on a CPU (or, negative, on none): a sender that never moves
// between CPUs never has its frames overtake each other in their backlogs.
func NewPoller(name string, cpu int) (_ *Poller, err error) {
	p := &Poller{name: name, cpu: cpu, epoll: -1, event: -1}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: make poller: %w", name, err), p.Close())
		}
	}()
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	if p.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, err
	}
	if err = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, p.event, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: -1}); err != nil {
		return nil, err
	}
	p.events = make([]unix.EpollEvent, 16)
	return p, nil
}

// Add has the poller wait for a socket, too.
func (p *Poller) Add(s *Socket) error {
	s.slot = len(p.sockets)
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, s.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(s.slot)}); err != nil {
		return fmt.Errorf("%s: watch packet socket: %w", s.name, err)
	}
	p.sockets = append(p.sockets, s)
	p.wants = append(p.wants, unix.EPOLLIN)
	return nil
}

// Release gives the goroutine's thread back as it was. It is for the goroutine that waited.
func (p *Poller) Release() { p.thread.release() }

// Close closes the poller, not its sockets. Closing twice is no error.
func (p *Poller) Close() error {
	var errs []error
	for _, fd := range []*int{&p.epoll, &p.event} {
		if *fd >= 0 {
			errs = append(errs, unix.Close(*fd))
			*fd = -1
		}
	}
	return errors.Join(errs...)
}

// Wake ends a Wait, the one under way or the next. Any goroutine may call it.
func (p *Poller) Wake() {
	if p.state.Swap(called) != asleep {
		return
	}
	one := [8]byte{1}
	// It can't block, and fails only when the counter is full of calls that nobody has seen.
	_, _ = unix.Write(p.event, one[:])
}

// Ready says whether a frame has come in at any of the sockets.
func (p *Poller) Ready() bool {
	n := len(p.sockets)
	for i := range n {
		if at := p.last + i; at < n && p.sockets[at].ring.ready() || at >= n && p.sockets[at-n].ring.ready() {
			p.last = at % n
			return true
		}
	}
	return false
}

// Wait returns once a frame has come in, a socket that was full has room, Wake was called, or limit is
// over; a negative limit never is. Frames that were taken must have been given back.
func (p *Poller) Wait(limit time.Duration) error {
	if err := p.thread.claim(p.name, p.cpu); err != nil {
		return err
	}
	if limit == 0 && p.state.Load() != called || p.Ready() {
		return nil // a call stays noted: it costs one round more
	}
	for i, s := range p.sockets {
		want := uint32(unix.EPOLLIN)
		if s.full {
			want |= unix.EPOLLOUT
		}
		if want != p.wants[i] {
			if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_MOD, s.fd, &unix.EpollEvent{Events: want, Fd: int32(i)}); err != nil {
				return fmt.Errorf("%s: watch packet socket: %w", s.name, err)
			}
			p.wants[i] = want
		}
	}
	p.thread.review()
	if p.hasty && (limit < 0 || limit > nap) && p.state.Load() == awake {
		ts := unix.NsecToTimespec(int64(nap))
		_, _, _ = unix.Syscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
		p.hasty = p.Ready()
		return nil
	}
	slept := time.Now()
	defer func() { p.hasty = time.Since(slept) < nap }()
	if !p.state.CompareAndSwap(awake, asleep) {
		p.state.Store(awake) // it was called
		return nil
	}
	n, err := p.sleep(limit)
	p.state.Store(awake)
	if err != nil && err != unix.EINTR {
		return fmt.Errorf("%s: wait for frames: %w", p.name, err)
	}
	for _, e := range p.events[:n] {
		if e.Fd < 0 {
			var count [8]byte
			_, _ = unix.Read(p.event, count[:])
			continue
		}
		s := p.sockets[e.Fd]
		p.last = int(e.Fd)
		if e.Events&unix.EPOLLOUT != 0 {
			s.full = false
		}
		if e.Events&unix.EPOLLERR != 0 {
			// ENETDOWN, when the interface was set down. Reading the error clears it.
			_, _ = unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR)
		}
	}
	return nil
}

// sleep is epoll_pwait2, whose limit is in nanoseconds (Linux 5.11).
func (p *Poller) sleep(limit time.Duration) (int, error) {
	var ts *unix.Timespec
	if limit >= 0 {
		t := unix.NsecToTimespec(int64(limit))
		ts = &t
	}
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.epoll), uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(unsafe.Pointer(ts)), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
