package crosstraffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// udp is a stream of datagrams at a rate, whatever becomes of them.
type udp struct {
	out, in *net.UDPConn
	raw     syscall.RawConn
	count   atomic.Uint64 // that the socket took
	refused atomic.Uint64 // for which the socket had no room, and which are gone
	failed  atomic.Pointer[error]
	quit    chan struct{}
	once    sync.Once
	work    sync.WaitGroup
}

// catchUp bounds what a sender that was not let run makes up for, in wall time.
const catchUp = 50 * time.Millisecond

func openUDP(e *ends) (_ stream, err error) {
	u := &udp{quit: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, u.stop())
		}
	}()
	if err := e.to.Do(func() (err error) {
		u.in, err = net.ListenUDP(e.network("udp"), net.UDPAddrFromAddrPort(netip.AddrPortFrom(e.toAddr, 0)))
		return err
	}); err != nil {
		return nil, fmt.Errorf("open a UDP socket at the receiver: %w", err)
	}
	if err := e.from.Do(func() error {
		d := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(e.fromAddr, 0)), Control: e.mark}
		c, err := d.Dial(e.network("udp"), u.in.LocalAddr().String())
		if err == nil {
			u.out = c.(*net.UDPConn)
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("open a UDP socket at the sender: %w", err)
	}
	if err := u.out.SetWriteBuffer(e.share); err != nil {
		return nil, fmt.Errorf("bound the sender's UDP socket: %w", err)
	}
	if u.raw, err = u.out.SyscallConn(); err != nil {
		return nil, err
	}
	u.work.Add(2)
	go u.drain()
	go u.send(e.size, time.Duration(uint64(e.size)*8*uint64(time.Second)/e.rate))
	return u, nil
}

// mark sets the DSCP of what a socket sends, before it is connected.
func (e *ends) mark(_, _ string, c syscall.RawConn) error {
	var err error
	cerr := c.Control(func(fd uintptr) {
		if e.fromAddr.Is4() {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, e.class)
		} else {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_TCLASS, e.class)
		}
	})
	return errors.Join(cerr, err)
}

// drain throws away what arrives.
func (u *udp) drain() {
	defer u.work.Done()
	b := make([]byte, 64<<10)
	for {
		if _, err := u.in.Read(b); err != nil {
			return
		}
	}
}

// send sends a datagram every gap of wall time.
func (u *udp) send(size int, gap time.Duration) {
	defer u.work.Done()
	gap = max(gap, time.Nanosecond)
	b := make([]byte, size)
	next := time.Now()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-u.quit:
			return
		case <-pause.C:
		}
		now := time.Now()
		if now.Sub(next) > catchUp {
			next = now.Add(-catchUp)
		}
		for ; !next.After(now); next = next.Add(gap) {
			if err := u.one(b); err != nil {
				u.failed.Store(&err)
				return
			}
		}
		pause.Reset(time.Until(next))
	}
}

// one sends a datagram without waiting for room. That a link is down, or the far end's socket closed, is nothing to it.
func (u *udp) one(b []byte) (err error) {
	cerr := u.raw.Write(func(fd uintptr) bool {
		_, err = unix.SendmsgN(int(fd), b, nil, nil, unix.MSG_DONTWAIT)
		return true
	})
	switch {
	case cerr != nil:
		return cerr
	case err == nil:
		u.count.Add(1)
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ENETUNREACH),
		errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.ENETDOWN), errors.Is(err, unix.EINTR):
		u.refused.Add(1)
	default:
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

func (u *udp) sent() (uint64, error) { return u.count.Load(), nil }

func (u *udp) trouble() error {
	if err := u.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (u *udp) ports() (from, to uint16) {
	return uint16(u.out.LocalAddr().(*net.UDPAddr).Port), uint16(u.in.LocalAddr().(*net.UDPAddr).Port)
}

func (u *udp) stop() error {
	var errs []error
	u.once.Do(func() { close(u.quit) })
	for _, c := range []*net.UDPConn{u.out, u.in} {
		if c != nil {
			errs = append(errs, closed(c))
		}
	}
	u.work.Wait()
	return errors.Join(errs...)
}

// closed closes something that may be closed already.
func closed(c io.Closer) error {
	if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// untilConnected bounds a TCP handshake, in wall time.
func untilConnected() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 10*time.Second)
}
