//go:build linux

package soft

import (
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/testbed/linux"
)

// The yardstick of the data path: what AF_PACKET sockets with sendmmsg and recvmmsg carry from h1 through leaf1 to h2
// when nobody looks at the frames, with as many on the way as the software RNIC keeps.
const (
	pipeFrame  = 14 + 20 + 8 + 12 + 4096 + 4 // a WRITE MIDDLE of the largest MTU
	pipeWindow = 512
)

type pipe struct {
	fds       []int // h1, leaf1 towards h1, leaf1 towards h2, h2
	sent, got atomic.Int64
	stop      atomic.Bool
	wg        sync.WaitGroup
}

type mmsg struct {
	hdr unix.Msghdr
	len uint32
}

const pipeBatch = 64

// messages are pipeBatch messages, each with a buffer.
func messages() ([]mmsg, []unix.Iovec) {
	ms, vs := make([]mmsg, pipeBatch), make([]unix.Iovec, pipeBatch)
	for i := range ms {
		b := make([]byte, 4352)
		vs[i].Base = &b[0]
		vs[i].SetLen(pipeFrame)
		ms[i].hdr.Iov = &vs[i]
		ms[i].hdr.SetIovlen(1)
		b[0], b[6], b[12], b[13] = 2, 2, 0x88, 0xb5 // a local experimental Ethertype: no stack takes it
	}
	return ms, vs
}

func mmsgCall(nr uintptr, fd int, ms []mmsg) int {
	n, _, errno := syscall.RawSyscall6(nr, uintptr(fd), uintptr(unsafe.Pointer(&ms[0])), uintptr(len(ms)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return -int(errno)
	}
	return int(n)
}

func (p *pipe) wait(fd int, events int16) {
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, 100)
}

func (p *pipe) sendAll(fd int, ms []mmsg) {
	for len(ms) > 0 && !p.stop.Load() {
		n := mmsgCall(unix.SYS_SENDMMSG, fd, ms)
		if n < 0 {
			p.wait(fd, unix.POLLOUT)
			continue
		}
		ms = ms[n:]
	}
}

func (p *pipe) run(do func()) {
	p.wg.Go(func() {
		// Scheduled as the nodes' threads are that have much to do; it ends with the goroutine.
		runtime.LockOSThread()
		_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Nice: -15, Runtime: 200_000}, 0)
		do()
	})
}

func (p *pipe) start() {
	p.run(func() {
		ms, _ := messages()
		for !p.stop.Load() {
			if p.sent.Load()-p.got.Load() > pipeWindow-pipeBatch {
				<-time.After(10 * time.Microsecond)
				continue
			}
			p.sendAll(p.fds[0], ms)
			p.sent.Add(pipeBatch)
		}
	})
	receive := func(fd int, each func(ms []mmsg)) {
		ms, _ := messages()
		for !p.stop.Load() {
			if n := mmsgCall(unix.SYS_RECVMMSG, fd, ms); n > 0 {
				each(ms[:n])
			} else {
				p.wait(fd, unix.POLLIN)
			}
		}
	}
	p.run(func() { receive(p.fds[1], func(ms []mmsg) { p.sendAll(p.fds[2], ms) }) })
	p.run(func() { receive(p.fds[3], func(ms []mmsg) { p.got.Add(int64(len(ms))) }) })
}

func openPipe(tb testing.TB, w *linux.Wiring) *pipe {
	tb.Helper()
	p := &pipe{}
	for _, at := range []struct{ node, port string }{{"h1", "eth0"}, {"leaf1", "eth0"}, {"leaf1", "eth1"}, {"h2", "eth0"}} {
		ns := w.Node(at.node)
		l, ok := ns.Link(at.port)
		if !ok {
			tb.Fatalf("no port %s:%s", at.node, at.port)
		}
		fd := -1
		if err := ns.Do(func() (err error) {
			fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
			return err
		}); err != nil {
			tb.Fatal(err)
		}
		p.fds = append(p.fds, fd)
		for _, o := range []struct{ level, name, value int }{
			{unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1}, {unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64 << 20},
		} {
			if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
				tb.Fatal(err)
			}
		}
		proto := uint16(0)
		if at.node != "h1" && !(at.node == "leaf1" && at.port == "eth1") {
			proto = 0x0300 // ETH_P_ALL in network order
		}
		if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: proto, Ifindex: l.Index}); err != nil {
			tb.Fatal(err)
		}
	}
	return p
}

func (p *pipe) close() {
	p.stop.Store(true)
	p.wg.Wait()
	for _, fd := range p.fds {
		unix.Close(fd)
	}
}

// pipeRate is what the pipe carries in a time, in bits of payload a second.
func pipeRate(tb testing.TB, w *linux.Wiring, d time.Duration) float64 {
	tb.Helper()
	p := openPipe(tb, w)
	p.start()
	start, first := time.Now(), p.got.Load()
	<-time.After(d)
	n, took := p.got.Load()-first, time.Since(start)
	p.close()
	return float64(n) * 4096 * 8 / took.Seconds()
}
