//go:build linux

package linux

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

// A capture's socket may hold captureBuffer bytes that its goroutine has not taken yet.
const captureBuffer = 64 << 20

// Capture gives every packet that a port's interface sends or receives to sink, from one
// goroutine. at turns the kernel's timestamps into fabric time. On a switch port outgoing
// packets are seen as they leave the queue, incoming ones as they arrive. stop ends it once the
// packets that passed before are taken, and says how many were given and how many the socket
// had no room for.
func (n *Namespace) Capture(port string, at func(time.Time) loop.Time, sink fabric.PacketSink) (stop func() (given, missed uint64, err error), err error) {
	return n.capture(port, nil, at, sink)
}

// capture is Capture of what a filter lets pass; without one, of everything.
func (n *Namespace) capture(port string, filter []unix.SockFilter, at func(time.Time) loop.Time, sink fabric.PacketSink) (stop func() (given, missed uint64, err error), err error) {
	l, ok := n.Link(port)
	if !ok {
		return nil, fmt.Errorf("%s: capture: there is no port %s", n.node, port)
	}
	fail := func(what string, err error) error {
		return fmt.Errorf("%s:%s: capture: %s: %w", n.node, port, what, err)
	}
	fd := -1
	err = n.Do(func() (err error) {
		// Protocol 0 until it is bound, so that no other interface's packets get in.
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, fail("open socket", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fail("eventfd", err), unix.Close(fd))
	}
	c := &capture{fd: fd, wake: wake, at: at, sink: sink, ended: make(chan struct{})}
	err = errors.Join(
		receiveRoom(fd, captureBuffer),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		attach(fd, filter),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: hostOrder(unix.ETH_P_ALL), Ifindex: l.Index}))
	if err != nil {
		return nil, errors.Join(fail("set up socket", err), c.close())
	}
	go c.run()
	return func() (uint64, uint64, error) {
		if c.stopped {
			return c.given, c.missed, nil
		}
		c.stopped = true
		if _, err := unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
			return 0, 0, fail("stop", err)
		}
		<-c.ended
		stats, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
		if err == nil {
			c.missed = uint64(stats.Drops)
		}
		if err = errors.Join(c.err, err, c.close()); err != nil {
			err = fail("read", err)
		}
		return c.given, c.missed, err
	}, nil
}

// attach puts a filter on a socket; an empty one lets all pass.
func attach(fd int, filter []unix.SockFilter) error {
	if len(filter) == 0 {
		return nil
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
}

type capture struct {
	fd, wake int
	at       func(time.Time) loop.Time
	sink     fabric.PacketSink
	ended    chan struct{}
	stopped  bool

	given, missed uint64
	err           error
}

func (c *capture) close() error { return errors.Join(unix.Close(c.fd), unix.Close(c.wake)) }

// run takes packets until it is woken to end and none is left.
func (c *capture) run() {
	defer close(c.ended)
	buf, oob := make([]byte, 1<<16), make([]byte, 256)
	fds := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}, {Fd: int32(c.wake), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			c.err = err
			return
		}
		ending := fds[1].Revents != 0
		for {
			size, control, _, _, err := unix.Recvmsg(c.fd, buf, oob, unix.MSG_TRUNC)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if errors.Is(err, unix.EAGAIN) {
				break
			}
			if err == nil {
				err = c.sink.Packet(c.at(stamp(oob[:control])), buf[:min(size, len(buf))], size)
			}
			if err != nil {
				c.err = err
				return
			}
			c.given++
		}
		if ending {
			return
		}
	}
}

// stamp is the time that the kernel gave a packet, or now.
func stamp(oob []byte) time.Time {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err == nil {
		for _, m := range messages {
			if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
				ts := *(*unix.Timespec)(unsafe.Pointer(&m.Data[0]))
				return time.Unix(ts.Sec, ts.Nsec)
			}
		}
	}
	return time.Now()
}

// hostOrder is a protocol number in network byte order, as AF_PACKET wants it.
func hostOrder(proto uint16) uint16 {
	var b [2]byte
	b[0], b[1] = byte(proto>>8), byte(proto)
	return *(*uint16)(unsafe.Pointer(&b[0]))
}

// Capture is Namespace.Capture at a port.
func (w *Wiring) Capture(port topo.PortRef, at func(time.Time) loop.Time, sink fabric.PacketSink) (stop func() (given, missed uint64, err error), err error) {
	ns, err := w.node(port.Node)
	if err != nil {
		return nil, err
	}
	return ns.Capture(port.Port, at, sink)
}

func (w *Wiring) node(name string) (*Namespace, error) {
	if ns := w.Node(name); ns != nil {
		return ns, nil
	}
	return nil, fmt.Errorf("%s: there is no such node", name)
}
