//go:build linux

package packet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/testbed/linux"
)

// Batch is how many frames go to the kernel in one system call at most.
const Batch = 64

// Options are what a socket is opened with.
type Options struct {
	// MTU is the interface's, in bytes of an IP packet.
	MTU int
	// Room is how many bytes of frames the kernel holds for the socket until they are taken; what
	// doesn't fit is dropped, and Drops counts it.
	Room int
	// Filter is the classic BPF program that chooses what the socket gets; nil: every frame.
	Filter []unix.SockFilter
}

// Socket sends and receives all frames of one interface.
type Socket struct {
	name string
	fd   int
	ring ring
	out  batch

	full bool // the last send found no room
	slot int  // in its poller

	mu      sync.Mutex
	dropped uint64
}

// Open opens a socket on a port's interface. The frames that the interface sends by other hands
// don't come in; those that it receives do, before the namespace's own stack gets them.
func Open(ns *linux.Namespace, port string, opt Options) (*Socket, error) {
	fd, index, err := Raw(ns, port)
	if err != nil {
		return nil, err
	}
	return Attach(fd, ns.Node()+":"+port, index, opt)
}

// Raw opens a descriptor for Attach, which another process may do, and says the index of the port's interface.
func Raw(ns *linux.Namespace, port string) (fd, index int, err error) {
	l, ok := ns.Link(port)
	if !ok {
		return -1, 0, fmt.Errorf("%s: open packet socket: there is no port %s", ns.Node(), port)
	}
	err = ns.Do(func() (err error) {
		// Protocol 0 until it is bound, so that nothing comes in before the filter is on.
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, 0, fmt.Errorf("%s:%s: open packet socket: %w", ns.Node(), port, err)
	}
	return fd, l.Index, nil
}

// Attach makes a socket of a descriptor, which is the socket's from then on, for the interface with an index.
func Attach(fd int, name string, index int, opt Options) (_ *Socket, err error) {
	s := &Socket{name: name, fd: fd}
	what := "leave out what the interface sends (needs Linux 4.20)"
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %s: %w", s.name, what, err), s.Close())
		}
	}()
	if err = unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return nil, err
	}
	if opt.Filter != nil {
		what = "attach filter"
		prog := unix.SockFprog{Len: uint16(len(opt.Filter)), Filter: &opt.Filter[0]}
		if err = unix.SetsockoptSockFprog(s.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &prog); err != nil {
			return nil, err
		}
	}
	// Before the ring, which is made for it.
	what = "say how frames are laid out"
	if err = unix.SetsockoptInt(s.fd, unix.SOL_PACKET, packetVnetHdr, 1); err != nil {
		return nil, err
	}
	what = "make receive ring"
	if err = s.ring.make(s.fd, opt.MTU, opt.Room); err != nil {
		return nil, err
	}
	what = "bind packet socket"
	if err = unix.Bind(s.fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ALL), Ifindex: index}); err != nil {
		return nil, err
	}
	return s, nil
}

// Name is the port's: "h1:eth0".
func (s *Socket) Name() string { return s.name }

// Close closes the socket. Frames that are still in its ring are lost; no slice that Next gave may be
// used any more. Closing twice is no error.
func (s *Socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.ring.close()
	if s.fd >= 0 {
		err = errors.Join(err, unix.Close(s.fd))
		s.fd = -1
	}
	return err
}

// Drops is how many frames came in and found no room. It may be called from any goroutine.
func (s *Socket) Drops() (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd < 0 {
		return s.dropped, nil
	}
	stats, err := unix.GetsockoptTpacketStats(s.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS) // and begins anew
	if err != nil {
		return s.dropped, fmt.Errorf("%s: read drops of packet socket: %w", s.name, err)
	}
	s.dropped += uint64(stats.Drops)
	return s.dropped, nil
}

// networkOrder is a protocol number as AF_PACKET wants it.
func networkOrder(proto uint16) uint16 {
	b := [2]byte{byte(proto >> 8), byte(proto)}
	return *(*uint16)(unsafe.Pointer(&b[0]))
}

// headRoom is how many bytes of headers a frame may have outside of its payload.
const headRoom = 160

// Every frame that goes to the kernel has a header before it which says how much of it is to lie in one piece: all of it. A frame
// above a page would else be put into two or three pages, and the interface, which takes no pieces, have it copied into one again
// (packet_alloc_skb, net/packet/af_packet.c; validate_xmit_skb, net/core/dev.c). Frames that come in have one, too, which
// says nothing.
const (
	packetVnetHdr = 15 // PACKET_VNET_HDR, include/uapi/linux/if_packet.h
	vnetHdrLen    = 10 // struct virtio_net_hdr
	vnetHdrAt     = 2  // of its field hdr_len
)

// batch is frames on their way to the kernel: what sendmmsg takes. It keeps pointers to what it was given until
// the next Send.
type batch struct {
	n     int
	msgs  [Batch]mmsghdr
	parts [Batch][4]unix.Iovec
	heads [Batch][headRoom]byte
	vnet  [Batch][vnetHdrLen]byte
}

// mmsghdr is struct mmsghdr; Go fills it up to a multiple of 8 as C does.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

// Room says whether another frame can be added before Send.
func (s *Socket) Room() bool { return s.out.n < Batch }

// Added is how many frames were added since the last Send.
func (s *Socket) Added() int { return s.out.n }

// Head is room for the headers, and the trailer behind them, of the frame that is added next: empty, with
// a capacity.
func (s *Socket) Head() []byte { return s.out.heads[s.out.n][:0] }

// Add adds a frame in up to three pieces, of which those after the first may be empty. They must stay as
// they are until Send.
func (s *Socket) Add(head, payload, trailer []byte) {
	b := &s.out
	v := &b.parts[b.n]
	binary.NativeEndian.PutUint16(b.vnet[b.n][vnetHdrAt:], uint16(len(head)+len(payload)+len(trailer)))
	v[0].Base = &b.vnet[b.n][0]
	v[0].SetLen(vnetHdrLen)
	v[1].Base = unsafe.SliceData(head)
	v[1].SetLen(len(head))
	n := 2
	if len(payload) > 0 {
		v[n].Base = unsafe.SliceData(payload)
		v[n].SetLen(len(payload))
		n++
	}
	if len(trailer) > 0 {
		v[n].Base = unsafe.SliceData(trailer)
		v[n].SetLen(len(trailer))
		n++
	}
	b.msgs[b.n].hdr.Iov = &v[0]
	b.msgs[b.n].hdr.SetIovlen(n)
	b.n++
}

// Send gives what was added to the kernel and forgets it. sent is how many frames the kernel has
// taken, from the first on; lost says that it refused the one after those for good, with err. With neither, the rest found
// no room: Full is true, and the poller waits for room.
func (s *Socket) Send() (sent int, lost bool, err error) {
	b := &s.out
	n := b.n
	b.n = 0
	for sent < n {
		// Raw: it doesn't block, and the runtime need not hear of it.
		r, _, errno := syscall.RawSyscall6(unix.SYS_SENDMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&b.msgs[sent])), uintptr(n-sent), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			sent += int(r)
			s.full = false
		case unix.EINTR:
		case unix.EAGAIN:
			s.full = true
			return sent, false, nil
		default:
			return sent, true, errno
		}
	}
	return sent, false, nil
}

// Full says that the last Send found no room in the kernel.
func (s *Socket) Full() bool { return s.full }
