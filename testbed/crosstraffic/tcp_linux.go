package crosstraffic

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// tcp is a connection that one end fills as fast as TCP lets it, or as its pacing does.
type tcp struct {
	out, in *net.TCPConn
	mu      sync.Mutex
	count   uint64 // once it is closed
	closed  bool
	failed  atomic.Pointer[error]
	work    sync.WaitGroup
}

func openTCP(e *ends) (_ stream, err error) {
	t := &tcp{}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.stop())
		}
	}()
	ctx, cancel := untilConnected()
	defer cancel()
	var l *net.TCPListener
	if err := e.to.Do(func() error {
		c := net.ListenConfig{Control: e.mark}
		c.SetMultipathTCP(false)
		any, err := c.Listen(ctx, e.network("tcp"), netip.AddrPortFrom(e.toAddr, 0).String())
		if err == nil {
			l = any.(*net.TCPListener)
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("listen at the receiver: %w", err)
	}
	defer l.Close()
	if err := e.from.Do(func() error {
		d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(e.fromAddr, 0)), Control: e.mark, KeepAlive: -1}
		d.SetMultipathTCP(false)
		c, err := d.DialContext(ctx, e.network("tcp"), l.Addr().String())
		if err == nil {
			t.out = c.(*net.TCPConn)
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if at, ok := ctx.Deadline(); ok {
		_ = l.SetDeadline(at)
	}
	if t.in, err = l.AcceptTCP(); err != nil {
		return nil, fmt.Errorf("accept the connection: %w", err)
	}
	if err := t.prepare(e); err != nil {
		return nil, err
	}
	t.work.Add(2)
	go t.send()
	go t.drain()
	return t, nil
}

// prepare has the kernel pace the sender, and both ends vanish when they are closed.
func (t *tcp) prepare(e *ends) error {
	raw, err := t.out.SyscallConn()
	if err != nil {
		return err
	}
	bytes := min(e.rate/8, math.MaxUint32-1) // ~0 means none (tcp(7): SO_MAX_PACING_RATE, bytes a second)
	cerr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, int(bytes))
	})
	if err = errors.Join(cerr, err); err != nil {
		return fmt.Errorf("pace the sender: %w", err)
	}
	return errors.Join(t.out.SetLinger(0), t.in.SetLinger(0))
}

func (t *tcp) send() {
	defer t.work.Done()
	b := make([]byte, 64<<10)
	for {
		if _, err := t.out.Write(b); err != nil {
			if !errors.Is(err, net.ErrClosed) {
				err = fmt.Errorf("send: %w", err)
				t.failed.Store(&err)
			}
			return
		}
	}
}

func (t *tcp) drain() {
	defer t.work.Done()
	_, _ = io.Copy(io.Discard, t.in)
}

// sent is what both ends have sent, segments and acknowledgements, retransmissions too: TCP_INFO's tcpi_segs_out.
func (t *tcp) sent() (uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return t.count, nil
	}
	return t.segments()
}

func (t *tcp) segments() (sum uint64, err error) {
	for _, c := range []*net.TCPConn{t.out, t.in} {
		if c == nil {
			continue
		}
		raw, err := c.SyscallConn()
		if err != nil {
			return sum, err
		}
		var info *unix.TCPInfo
		var ierr error
		if err := raw.Control(func(fd uintptr) { info, ierr = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); err != nil {
			return sum, err
		}
		if ierr != nil {
			return sum, fmt.Errorf("read TCP_INFO: %w", ierr)
		}
		sum += uint64(info.Segs_out)
	}
	return sum, nil
}

func (t *tcp) trouble() error {
	if err := t.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (t *tcp) ports() (from, to uint16) {
	return uint16(t.out.LocalAddr().(*net.TCPAddr).Port), uint16(t.in.LocalAddr().(*net.TCPAddr).Port)
}

// stop resets the connection: a close in order would have what is queued sent first, and leave the port taken for a minute.
func (t *tcp) stop() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	if !t.closed {
		// The sender first stops making more, so that what is counted is all.
		if t.out != nil {
			_ = t.out.SetWriteDeadline(time.Unix(1, 0))
		}
		n, err := t.segments()
		t.count, t.closed = n, true
		errs = append(errs, err)
	}
	for _, c := range []*net.TCPConn{t.out, t.in} {
		if c != nil {
			errs = append(errs, closed(c))
		}
	}
	t.work.Wait()
	return errors.Join(errs...)
}
