//go:build linux

package nl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxBatchBytes = 32 << 10 // well below a socket's default send buffer
	replyTimeout  = 30 * time.Second
	dumpTries     = 10
)

// Conn is a netlink socket. It acts in the namespace it was opened in, whichever thread uses it.
type Conn struct {
	mu  sync.Mutex
	fd  int
	seq uint32
	rcv []byte
}

// Open opens a socket of a netlink family in the calling thread's network namespace.
func Open(family int) (*Conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, family)
	if err != nil {
		return nil, fmt.Errorf("open netlink socket of family %d: %w", family, err)
	}
	// Explanations make errors better; kernels since 4.12 give them. A reply that never comes
	// must not hang a teardown.
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_EXT_ACK, 1)
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1)
	tv := unix.NsecToTimeval(int64(replyTimeout))
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	return Adopt(fd), nil
}

// Adopt makes a connection of a netlink socket that another process opened, and owns it from then on.
func Adopt(fd int) *Conn { return &Conn{fd: fd, rcv: make([]byte, 64<<10)} }

// File is the socket for another process, which adopts it. The caller closes it.
func (c *Conn) File() (*os.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fd, err := unix.FcntlInt(uintptr(c.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("share netlink socket: %w", err)
	}
	return os.NewFile(uintptr(fd), "netlink"), nil
}

// Close closes the socket. Closing twice is no error.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd < 0 {
		return nil
	}
	fd := c.fd
	c.fd = -1
	return unix.Close(fd)
}

// Send hands the batch to the kernel, waits until all of it has been tried, and empties it. The
// first request that failed is returned with its label; those after it were tried nevertheless.
// Errors in forgive don't count.
func (c *Conn) Send(b *Batch, forgive ...error) error {
	defer func() { b.buf, b.labels = b.buf[:0], b.labels[:0] }()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd < 0 {
		return fmt.Errorf("netlink socket is closed: %w", unix.EBADF)
	}
	var first error
	for from := 0; from < len(b.buf); {
		// An acknowledgement of the last is enough: errors come anyway.
		to, last := from, from
		for to < len(b.buf) {
			n := (int(binary.NativeEndian.Uint32(b.buf[to:])) + 3) &^ 3
			if to > from && to+n-from > maxBatchBytes {
				break
			}
			last, to = to, to+n
		}
		h := b.buf[last:]
		binary.NativeEndian.PutUint16(h[6:], binary.NativeEndian.Uint16(h[6:])|unix.NLM_F_ACK)
		seq := binary.NativeEndian.Uint32(h[8:])
		if err := unix.Sendto(c.fd, b.buf[from:to], 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return fmt.Errorf("send netlink batch: %w", err)
		}
		if err := c.acks(b.labels, seq, forgive); err != nil && first == nil {
			first = err
		}
		from = to
	}
	return first
}

// acks reads replies up to the one for the request with sequence number last.
func (c *Conn) acks(labels []string, last uint32, forgive []error) (first error) {
	for {
		msgs, err := c.read()
		if err != nil {
			return err
		}
		for len(msgs) > 0 {
			var m message
			if m, msgs, err = next(msgs); err != nil {
				return err
			}
			if m.kind != unix.NLMSG_ERROR {
				continue
			}
			if err := ackError(m, labels, forgive); err != nil && first == nil {
				first = err
			}
			if m.seq == last {
				return first
			}
		}
	}
}

// Dump sends a request with NLM_F_DUMP and calls each for every answer's payload. A dump that
// the kernel says was interrupted by a change is repeated from the start: reset is called before
// each try and must forget what each has seen.
func (c *Conn) Dump(kind uint16, body []byte, label string, reset func(), each func(kind uint16, payload []byte)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for try := 1; ; try++ {
		reset()
		interrupted, err := c.dump(kind, unix.NLM_F_DUMP, body, each)
		if err != nil {
			return fmt.Errorf("%s: %w", label, err)
		}
		if !interrupted {
			return nil
		}
		if try == dumpTries {
			return fmt.Errorf("%s: the dump was interrupted by changes %d times", label, try)
		}
	}
}

// Get sends a request that has one answer, and calls each with its payload.
func (c *Conn) Get(kind uint16, body []byte, label string, each func(kind uint16, payload []byte)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.dump(kind, unix.NLM_F_ACK, body, each); err != nil {
		return fmt.Errorf("%s: %w", label, err)
	}
	return nil
}

func (c *Conn) dump(kind, flags uint16, body []byte, each func(uint16, []byte)) (interrupted bool, err error) {
	if c.fd < 0 {
		return false, fmt.Errorf("netlink socket is closed: %w", unix.EBADF)
	}
	c.seq++
	seq := c.seq | 1<<31 // never a batch's
	var b Batch
	b.Begin(kind, flags, "")
	b.buf = append(b.buf, body...)
	b.End()
	binary.NativeEndian.PutUint32(b.buf[8:], seq)
	if err := unix.Sendto(c.fd, b.buf, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, err
	}
	for {
		msgs, err := c.read()
		if err != nil {
			return false, err
		}
		for len(msgs) > 0 {
			var m message
			if m, msgs, err = next(msgs); err != nil {
				return false, err
			}
			if m.seq != seq {
				continue
			}
			if m.flags&unix.NLM_F_DUMP_INTR != 0 {
				interrupted = true
			}
			switch m.kind {
			case unix.NLMSG_DONE:
				if len(m.payload) >= 4 {
					if code := int32(binary.NativeEndian.Uint32(m.payload)); code < 0 {
						return interrupted, unix.Errno(-code)
					}
				}
				return interrupted, nil
			case unix.NLMSG_ERROR:
				return interrupted, ackError(m, nil, nil)
			default:
				each(m.kind, m.payload)
			}
		}
	}
}

func (c *Conn) read() ([]byte, error) {
	for {
		n, _, err := unix.Recvfrom(c.fd, c.rcv, 0)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return nil, fmt.Errorf("the kernel gave no netlink reply within %v", replyTimeout)
		case err != nil:
			return nil, fmt.Errorf("read netlink replies: %w", err)
		default:
			return c.rcv[:n], nil
		}
	}
}

type message struct {
	kind, flags uint16
	seq         uint32
	payload     []byte
}

func next(b []byte) (message, []byte, error) {
	if len(b) < unix.SizeofNlMsghdr {
		return message{}, nil, fmt.Errorf("read netlink replies: %d bytes are no message", len(b))
	}
	n := int(binary.NativeEndian.Uint32(b))
	if n < unix.SizeofNlMsghdr || n > len(b) {
		return message{}, nil, fmt.Errorf("read netlink replies: a message of %d bytes in %d", n, len(b))
	}
	m := message{binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint16(b[6:]), binary.NativeEndian.Uint32(b[8:]), b[unix.SizeofNlMsghdr:n]}
	return m, b[min((n+3)&^3, len(b)):], nil
}

func ackError(m message, labels []string, forgive []error) error {
	if len(m.payload) < 4 {
		return errors.New("netlink error reply is cut short")
	}
	code := int32(binary.NativeEndian.Uint32(m.payload))
	if code == 0 {
		return nil
	}
	errno := unix.Errno(-code)
	for _, f := range forgive {
		if errors.Is(errno, f) {
			return nil
		}
	}
	err := error(errno)
	if why := explanation(m); why != "" {
		err = fmt.Errorf("%w (%s)", errno, why)
	}
	if i := int(m.seq); i >= 1 && i <= len(labels) {
		return fmt.Errorf("%s: %w", labels[i-1], err)
	}
	return err
}

// explanation is the extended acknowledgement's message (NLMSGERR_ATTR_MSG), if there is one.
func explanation(m message) string {
	if m.flags&unix.NLM_F_ACK_TLVS == 0 {
		return ""
	}
	at := 4 + unix.SizeofNlMsghdr
	if m.flags&unix.NLM_F_CAPPED == 0 && len(m.payload) >= 8 {
		at = 4 + (int(binary.NativeEndian.Uint32(m.payload[4:]))+3)&^3
	}
	if at > len(m.payload) {
		return ""
	}
	return StringAt(Attrs(m.payload[at:])[1])
}
