//go:build linux

package kernel

import (
	"errors"
	"fmt"
	"math"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// sink is where a host's packets vanish while its port can't send. A NIC without a link sends
// again until its retries run out. rxe takes a packet that the kernel refuses for an error of its
// own: the queue pair is in error at once, and all that its owner sees is WR_FLUSH_ERR.
//
// The program comes and goes by tcx: adding or deleting a clsact qdisc stops the device for a
// moment (qdisc_graft, net/sched/sch_api.c), and what is sent then is refused too.
type sink struct {
	where string
	flag  *ebpf.Map
	hook  link.Link
}

// onward is TCX_NEXT (include/uapi/linux/bpf.h).
const onward = -1

// newSink puts a sink on a port. It is closed until it is opened.
func newSink(n *node, port string) (_ *sink, err error) {
	s := &sink{where: n.name + ":" + port}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: sink: %w", s.where, err)
		}
	}()
	l, ok := n.ns.Link(port)
	if !ok {
		return nil, errors.New("no such port")
	}
	s.flag, err = ebpf.NewMap(&ebpf.MapSpec{Name: "rb_sink", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return nil, fmt.Errorf("make flag: %w", err)
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "rb_sink", Type: ebpf.SchedCLS, License: "Dual MIT/GPL",
		Instructions: asm.Instructions{
			asm.LoadMapValue(asm.R1, s.flag.FD(), 0),
			asm.LoadMem(asm.R1, asm.R1, 0, asm.Word),
			asm.Mov.Imm(asm.R0, onward),
			asm.JEq.Imm(asm.R1, 0, "out"),
			// To an interface that isn't there: the packet is freed, and its sender is told that it
			// is on its way (sch_handle_egress, net/core/dev.c). TCX_DROP would be an error.
			asm.Mov.Imm(asm.R1, math.MaxInt32),
			asm.Mov.Imm(asm.R2, 0),
			asm.FnRedirect.Call(),
			asm.Return().WithSymbol("out"),
		},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("load program: %w", err), s.flag.Close())
	}
	defer prog.Close() // the link keeps it
	err = n.ns.Do(func() (err error) {
		s.hook, err = link.AttachTCX(link.TCXOptions{Interface: l.Index, Program: prog, Attach: ebpf.AttachTCXEgress, Anchor: link.Tail()})
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("attach program (tcx, Linux 6.6): %w", err), s.flag.Close())
	}
	return s, nil
}

// open lets what the port is to send vanish, or no longer.
func (s *sink) open(open bool) error {
	v := uint32(0)
	if open {
		v = 1
	}
	if err := s.flag.Put(uint32(0), v); err != nil {
		return fmt.Errorf("%s: set sink: %w", s.where, err)
	}
	return nil
}

// passed waits until every packet that had passed a sink before it was opened is in its port's
// qdisc: one that a processor still has in its hands when the qdisc stops is refused. (A sender is
// an RCU reader from before the sink until after the qdisc, and this membarrier is
// synchronize_rcu, kernel/sched/membarrier.c.)
func passed() error {
	const global = 1 // MEMBARRIER_CMD_GLOBAL
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, global, 0, 0); errno != 0 {
		return fmt.Errorf("wait for an RCU grace period: membarrier: %w", errno)
	}
	return nil
}

// remove takes it off the port.
func (s *sink) remove() error { return errors.Join(s.hook.Close(), s.flag.Close()) }
