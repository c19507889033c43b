package guest

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// pinPaths keeps on, for as long as the guest lives, what the kernel's packet path switches on
// and off by patching its own code (static keys).
//
// Under TCG that patching is not safe: a processor may translate an instruction between the
// moment its old translation is thrown away and the moment the new byte is stored, keep the
// stale breakpoint, and take an int3 that belongs to nobody ("Fatal exception in interrupt" in
// __netif_receive_skb_core or __dev_queue_xmit). Each testbed, fault and capture would flip
// those keys with traffic under way. A clsact qdisc added and removed beside traffic killed
// guests within seconds; with the same qdisc held elsewhere 3,800 rounds did no harm.
func pinPaths() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("pin: %w", err)
	}
	at := netlink.QdiscAttrs{LinkIndex: lo.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}
	return errors.Join(
		// Ingress and egress hooks, and classification in software.
		pinned("clsact", netlink.QdiscAdd(&netlink.GenericQdisc{QdiscAttrs: at, QdiscType: "clsact"})),
		pinned("filter", netlink.FilterAdd(&netlink.MatchAll{FilterAttrs: netlink.FilterAttrs{
			LinkIndex: lo.Attrs().Index, Parent: netlink.HANDLE_MIN_INGRESS, Priority: 1, Protocol: unix.ETH_P_ALL,
		}, ClassId: 1})),
		// Programs attached by tcx.
		pinned("tcx", pinTCX(lo.Attrs().Index)),
		// Steering of received packets to processors.
		pinned("rps", os.WriteFile("/sys/class/net/lo/queues/rx-0/rps_cpus", []byte("1"), 0)),
		// Time stamps of received packets, and UDP encapsulation, which rxe's tunnel sockets are.
		pinned("socket", pinSocket(unix.AF_INET)),
		pinned("socket", pinSocket(unix.AF_INET6)),
	)
}

func pinned(what string, err error) error {
	if err != nil {
		return fmt.Errorf("pin %s: %w", what, err)
	}
	return nil
}

// tcxHooks are the attached programs, which go when nothing refers to them.
var tcxHooks []link.Link

// pinTCX attaches a program that lets everything pass.
func pinTCX(index int) error {
	const tcxNext = -1 // TCX_NEXT, linux/bpf.h
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "rb_pin", Type: ebpf.SchedCLS, License: "Dual MIT/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, tcxNext), asm.Return()},
	})
	if err != nil {
		return err
	}
	defer prog.Close() // the hook keeps it
	hook, err := link.AttachTCX(link.TCXOptions{Interface: index, Program: prog, Attach: ebpf.AttachTCXIngress})
	tcxHooks = append(tcxHooks, hook)
	return err
}

// pinSocket opens a socket that asks for time stamps and takes encapsulated packets, and
// keeps it.
func pinSocket(family int) error {
	const udpEncap, udpEncapESPInUDP = 100, 2 // linux/udp.h
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptInt(fd, unix.SOL_UDP, udpEncap, udpEncapESPInUDP))
}
