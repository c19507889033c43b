//go:build linux

package linux

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// maxBatchBytes keeps one send well below a socket's default send buffer (208 KiB), which the
// kernel charges with more than the bytes themselves.
const maxBatchBytes = 32 << 10

// What the kernel answers to one send lies in the socket before the system call returns, and what
// doesn't fit is lost. An answer about a link takes up to 4 KiB of the buffer, so maxBatch of them
// fit into receiveBuffer, which the kernel doubles.
const (
	maxBatch      = 256
	receiveBuffer = 1 << 20
)

// A routeSocket is an rtnetlink socket. It belongs to the namespace it was opened in for good,
// whichever thread uses it.
type routeSocket struct {
	mu  sync.Mutex
	fd  int
	rcv []byte
}

// openRouteSocket opens a socket in the calling thread's namespace.
func openRouteSocket() (*routeSocket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink socket: %w", err)
	}
	// Both only make errors better; kernels since 4.12 have them.
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_EXT_ACK, 1)
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1)
	if err := receiveRoom(fd, receiveBuffer); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("give an rtnetlink socket a buffer of %d bytes: %w", receiveBuffer, err)
	}
	return &routeSocket{fd: fd}, nil
}

func (s *routeSocket) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd >= 0 {
		_ = unix.Close(s.fd)
		s.fd = -1
	}
}

// cookie is the identity of the socket's namespace: the kernel counts them up and never uses
// one twice until it boots (Linux 5.14, net/core/net_namespace.c).
func (s *routeSocket) cookie() (uint64, error) {
	c, err := unix.GetsockoptUint64(s.fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return 0, fmt.Errorf("read network namespace cookie (needs Linux 5.14): %w", err)
	}
	return c, nil
}

// send hands the batch to the kernel and empties it. The kernel handles rtnetlink requests while
// the sender waits, so that all have been tried when the system call returns; the first that
// failed is returned, and those after it were tried nevertheless. forgive says which errors
// don't count.
func (s *routeSocket) send(b *batch, forgive ...error) error {
	return s.exchange(b, nil, forgive)
}

// query is send for requests that are answered; each gets the answers' types and bodies.
func (s *routeSocket) query(b *batch, each func(kind uint16, body []byte)) error {
	return s.exchange(b, each, nil)
}

func (s *routeSocket) exchange(b *batch, each func(uint16, []byte), forgive []error) error {
	defer func() { b.buf, b.labels = b.buf[:0], b.labels[:0] }()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd < 0 {
		return fmt.Errorf("rtnetlink socket is closed: %w", unix.EBADF)
	}
	if s.rcv == nil {
		s.rcv = make([]byte, 32<<10)
	}
	for from := 0; from < len(b.buf); {
		// Take whole messages up to the limit, and ask for an acknowledgement of the last only:
		// errors come anyway, and successes aren't worth a message each.
		to, last := from, from
		for n := 0; to < len(b.buf) && n < maxBatch; n++ {
			n := int(native.Uint32(b.buf[to:]))
			n = (n + unix.NLMSG_ALIGNTO - 1) &^ (unix.NLMSG_ALIGNTO - 1)
			if to > from && to+n-from > maxBatchBytes {
				break
			}
			last = to
			to += n
		}
		flags := native.Uint16(b.buf[last+6:])
		native.PutUint16(b.buf[last+6:], flags|unix.NLM_F_ACK)
		seq := native.Uint32(b.buf[last+8:])
		if err := unix.Sendto(s.fd, b.buf[from:to], 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return fmt.Errorf("send rtnetlink batch: %w", err)
		}
		if err := s.collect(b, seq, each, forgive); err != nil {
			s.drain()
			return err
		}
		from = to
	}
	return nil
}

// drain throws away replies that nobody has read: they would be taken for answers to the next
// batch, and as long as a buffer that once was full has not been emptied, the kernel drops further
// replies without a word.
func (s *routeSocket) drain() {
	for {
		if _, _, err := unix.Recvfrom(s.fd, s.rcv, unix.MSG_DONTWAIT); err != nil && err != unix.EINTR && err != unix.ENOBUFS {
			return
		}
	}
}

// collect reads replies up to the one that answers the message with sequence number last. All are
// there already; one that isn't was lost and will never come.
func (s *routeSocket) collect(b *batch, last uint32, each func(uint16, []byte), forgive []error) (first error) {
	for {
		n, _, err := unix.Recvfrom(s.fd, s.rcv, unix.MSG_DONTWAIT)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("read rtnetlink replies: %w", err)
		}
		for buf := s.rcv[:n]; len(buf) >= unix.SizeofNlMsghdr+4; {
			size := int(native.Uint32(buf))
			if size < unix.SizeofNlMsghdr+4 || size > len(buf) {
				return fmt.Errorf("read rtnetlink replies: a message of %d bytes in %d", size, len(buf))
			}
			kind, seq := native.Uint16(buf[4:]), native.Uint32(buf[8:])
			if kind == unix.NLMSG_ERROR {
				if err := replyError(buf[:size], b, seq, forgive); err != nil && first == nil {
					first = err
				}
				if seq == last {
					return first
				}
			} else if each != nil {
				each(kind, buf[unix.SizeofNlMsghdr:size])
			}
			buf = buf[min((size+3)&^3, len(buf)):]
		}
	}
}

// replyError turns a reply into an error with its label and the kernel's own explanation.
func replyError(msg []byte, b *batch, seq uint32, forgive []error) error {
	code := int32(native.Uint32(msg[unix.SizeofNlMsghdr:]))
	if code == 0 {
		return nil
	}
	errno := unix.Errno(-code)
	for _, f := range forgive {
		if errors.Is(errno, f) {
			return nil
		}
	}
	label := "rtnetlink request"
	if seq >= 1 && int(seq) <= len(b.labels) {
		label = b.labels[seq-1]()
	}
	if why := kernelsWord(msg); why != "" {
		return fmt.Errorf("%s: %w (%s)", label, errno, why)
	}
	return fmt.Errorf("%s: %w", label, errno)
}

// kernelsWord is the extended acknowledgement's message (NLMSGERR_ATTR_MSG), if there is one.
func kernelsWord(msg []byte) string {
	const attrMsg = 1
	flags := native.Uint16(msg[6:])
	if flags&unix.NLM_F_ACK_TLVS == 0 {
		return ""
	}
	at := unix.SizeofNlMsghdr + 4 + unix.SizeofNlMsghdr
	if flags&unix.NLM_F_CAPPED == 0 && len(msg) >= at {
		echoed := int(native.Uint32(msg[unix.SizeofNlMsghdr+4:]))
		at = unix.SizeofNlMsghdr + 4 + (echoed+3)&^3
	}
	for at+4 <= len(msg) {
		n, kind := int(native.Uint16(msg[at:])), native.Uint16(msg[at+2:])&0x3fff
		if n < 4 || at+n > len(msg) {
			return ""
		}
		if kind == attrMsg {
			v := msg[at+4 : at+n]
			for len(v) > 0 && v[len(v)-1] == 0 {
				v = v[:len(v)-1]
			}
			return string(v)
		}
		at += (n + 3) &^ 3
	}
	return ""
}

// receiveRoom gives a socket room for n bytes; in a user namespace as much of it as the machine lets users have.
func receiveRoom(fd, n int) error {
	err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, n)
	if errors.Is(err, unix.EPERM) && Rootless() {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, n)
	}
	return err
}
