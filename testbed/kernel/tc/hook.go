//go:build linux

package tc

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/testbed/kernel/nl"
)

// A hook is a program on a device's ingress, as a classifier of a clsact qdisc. Programs that are
// attached by tcx run before it, whenever they come. Hooks cost the kernel next to nothing, where
// attaching and detaching by tcx waits for an RCU grace period each time (tcx_entry_sync,
// include/net/tcx.h): 192 of those take 3 s. They go with their device.
const (
	clsact         = 0xffff_fff1 // TC_H_CLSACT
	clsactID       = 0xffff_0000
	clsactIngress  = 0xffff_fff2 // TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)
	clsactEgress   = 0xffff_fff3 // TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)
	hookPriority   = 1
	lastPriority   = 2
	protocolAll    = 0x0300 // ETH_P_ALL in network byte order
	bpfFD          = 6      // TCA_BPF_FD
	bpfName        = 7      // TCA_BPF_NAME
	bpfFlags       = 8      // TCA_BPF_FLAGS
	bpfID          = 11     // TCA_BPF_ID
	bpfDirect      = 1      // TCA_BPF_FLAG_ACT_DIRECT
	hookName       = "rocebed"
	classifierKind = "bpf"
)

// AppendHookPlace gives a device what hooks hang on. All devices' places belong in one batch and
// their hooks in the next: the first hook on a place that is younger than a grace period waits
// for one, and those after it then needn't.
func AppendHookPlace(b *nl.Batch, ifindex int, where string) {
	b.Begin(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_EXCL, where+": add qdisc clsact")
	appendHeader(b, ifindex, clsactID, clsact)
	b.AttrString(tcaKind, "clsact")
	b.End()
}

// AppendHook puts a program (of type SCHED_CLS, by its descriptor) on a device's place. AppendLastHook puts one behind it, which sees what the
// first one lets go on (TC_ACT_UNSPEC).
func AppendHook(b *nl.Batch, ifindex, program int, where string) {
	appendHook(b, ifindex, program, clsactIngress, hookPriority, where)
}

func AppendLastHook(b *nl.Batch, ifindex, program int, where string) {
	appendHook(b, ifindex, program, clsactIngress, lastPriority, where)
}

// AppendEgressHook puts a program on a device's egress, before its queues.
func AppendEgressHook(b *nl.Batch, ifindex, program int, where string) {
	appendHook(b, ifindex, program, clsactEgress, hookPriority, where)
}

func appendHook(b *nl.Batch, ifindex, program int, parent, priority uint32, where string) {
	b.Begin(unix.RTM_NEWTFILTER, unix.NLM_F_CREATE|unix.NLM_F_EXCL, where+": add program")
	appendFilterHeader(b, ifindex, parent, priority<<16|protocolAll)
	b.AttrString(tcaKind, classifierKind)
	b.Nest(tcaOptions, func() {
		b.AttrU32(bpfFD, uint32(program))
		b.AttrString(bpfName, hookName)
		b.AttrU32(bpfFlags, bpfDirect)
	})
	b.End()
}

// AppendUnhook takes a device's place away with what hangs on it.
func AppendUnhook(b *nl.Batch, ifindex int, where string) {
	b.Begin(unix.RTM_DELQDISC, 0, where+": delete qdisc clsact")
	appendHeader(b, ifindex, clsactID, clsact)
	b.End()
}

func appendFilterHeader(b *nl.Batch, ifindex int, parent, info uint32) {
	b.U8(unix.AF_UNSPEC)
	b.Zero(3)
	b.U32(uint32(ifindex))
	b.U32(0)
	b.U32(parent)
	b.U32(info)
}

// Hooks are the programs on a device's place, by id.
func (c *Conn) Hooks(ifindex int) ([]uint32, error) {
	var b nl.Batch
	b.Begin(0, 0, "")
	appendFilterHeader(&b, ifindex, clsactIngress, 0)
	body := b.Bytes()[unix.SizeofNlMsghdr:]
	var ids []uint32
	err := c.nl.Dump(unix.RTM_GETTFILTER, body, fmt.Sprintf("read programs of interface %d", ifindex), func() { ids = nil }, func(kind uint16, p []byte) {
		if kind != unix.RTM_NEWTFILTER || len(p) < tcmsgLen {
			return
		}
		a := nl.Attrs(p[tcmsgLen:])
		if options := nl.Attrs(a[tcaOptions]); nl.StringAt(a[tcaKind]) == classifierKind && options[bpfID] != nil {
			ids = append(ids, nl.U32At(options[bpfID]))
		}
	})
	return ids, err
}
