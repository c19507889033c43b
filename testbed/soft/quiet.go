//go:build linux

package soft

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/testbed/linux"
)

// The kernel's own stack must not answer what is a software node's: a host without a UDP socket for RoCE's port
// would tell every sender that the port is unreachable. A program on the interface drops it behind the packet sockets, before the
// stack spends time on it. Where programs may not be loaded (without privileges, before Linux 6.6), a host has a UDP
// socket that takes nothing; a switch's stack, which has no addresses, is silent by itself.

// The answers of a tcx program (include/uapi/linux/bpf.h).
const (
	tcxNext = -1
	tcxDrop = 2
)

// hush keeps the stack behind a port from what is the node's: RoCE and pauses on a host, everything on a switch.
func hush(ns *linux.Namespace, port string, host bool) (closer, error) {
	l, ok := ns.Link(port)
	if !ok {
		return nil, fmt.Errorf("%s: there is no port %s", ns.Node(), port)
	}
	hook, err := dropBehind(ns, l, host)
	if err == nil {
		return hook, nil
	}
	if !host {
		return nothing{}, nil
	}
	s, serr := deafSocket(ns, l)
	if serr != nil {
		return nil, fmt.Errorf("%s:%s: keep RoCE from the kernel's stack: %w", ns.Node(), port, errors.Join(err, serr))
	}
	return s, nil
}

type nothing struct{}

func (nothing) Close() error { return nil }

// dropBehind drops at the interface's tcx hook, which comes after packet sockets.
func dropBehind(ns *linux.Namespace, l linux.Link, host bool) (closer, error) {
	code := asm.Instructions{asm.Mov.Imm(asm.R0, tcxDrop), asm.Return()}
	if host {
		code = roceDropped()
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "rb_quiet", Type: ebpf.SchedCLS, License: "Dual MIT/GPL", Instructions: code})
	if err != nil {
		return nil, fmt.Errorf("load program: %w", err)
	}
	defer prog.Close() // the link keeps it
	var hook link.Link
	err = ns.Do(func() (err error) {
		hook, err = link.AttachTCX(link.TCXOptions{Interface: l.Index, Program: prog, Attach: ebpf.AttachTCXIngress, Anchor: link.Tail()})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("attach program (tcx, Linux 6.6): %w", err)
	}
	return hook, nil
}

// roceDropped is packet.RoCE's choice for tcx. What the frame is too short for returns 0 by itself: pass.
func roceDropped() asm.Instructions {
	const eth = roce.EthernetLen
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1), // where the loads from the packet look for it
		asm.LoadAbs(12, asm.Half),
		asm.JEq.Imm(asm.R0, int32(roce.EtherTypeMACControl), "drop"),
		asm.JEq.Imm(asm.R0, int32(roce.EtherTypeIPv4), "ipv4"),
		asm.JNE.Imm(asm.R0, int32(roce.EtherTypeIPv6), "next"),
		asm.LoadAbs(eth+6, asm.Byte),
		asm.JNE.Imm(asm.R0, roce.ProtocolUDP, "next"),
		asm.LoadAbs(eth+roce.IPv6Len+2, asm.Half),
		asm.JEq.Imm(asm.R0, roce.Port, "drop"),
		asm.Ja.Label("next"),
		asm.LoadAbs(eth+9, asm.Byte).WithSymbol("ipv4"),
		asm.JNE.Imm(asm.R0, roce.ProtocolUDP, "next"),
		asm.LoadAbs(eth+6, asm.Half),
		asm.And.Imm(asm.R0, 0x3fff), // a fragment
		asm.JNE.Imm(asm.R0, 0, "next"),
		asm.LoadAbs(eth, asm.Byte),
		asm.And.Imm(asm.R0, 0xf),
		asm.LSh.Imm(asm.R0, 2),
		asm.Mov.Reg(asm.R7, asm.R0),
		asm.LoadInd(asm.R0, asm.R7, eth+2, asm.Half),
		asm.JEq.Imm(asm.R0, roce.Port, "drop"),
		asm.Mov.Imm(asm.R0, tcxNext).WithSymbol("next"),
		asm.Return(),
		asm.Mov.Imm(asm.R0, tcxDrop).WithSymbol("drop"),
		asm.Return(),
	}
}

// deaf is a UDP socket on RoCE's port that takes nothing.
type deaf struct{ fd int }

func (d deaf) Close() error { return unix.Close(d.fd) }

func deafSocket(ns *linux.Namespace, l linux.Link) (_ closer, err error) {
	fd := -1
	err = ns.Do(func() (err error) {
		fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if errors.Is(err, unix.EAFNOSUPPORT) {
			fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open socket: %w", err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	none := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	if err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &none[0]}); err != nil {
		return nil, fmt.Errorf("attach filter: %w", err)
	}
	if err = unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, l.Name); err != nil {
		return nil, fmt.Errorf("bind to device: %w", err)
	}
	addr := unix.Sockaddr(&unix.SockaddrInet6{Port: roce.Port})
	if domain, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); domain == unix.AF_INET {
		addr = &unix.SockaddrInet4{Port: roce.Port}
	}
	if err = unix.Bind(fd, addr); err != nil {
		return nil, fmt.Errorf("bind to port %d: %w", roce.Port, err)
	}
	return deaf{fd}, nil
}
