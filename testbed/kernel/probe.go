//go:build linux

package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/workloads/verbs/ibv"
)

// trial is a feature and how it is tried. try runs in a scratch namespace that has a pair of
// veth interfaces, up and with addresses.
type trial struct {
	Feature
	try func(s *scratch) error
}

// How to get what a kernel lacks.
const (
	getKernel  = "a kernel with it: rocebed's own guest has it (--guest); on Debian, linux-image-amd64 from backports"
	getModule  = "modprobe %s, or a kernel that has it: rocebed's own guest does (--guest)"
	getRebuild = "libibverbs' headers (Debian: libibverbs-dev) and a C compiler, then make build"
)

// noBackend is what the absence of something needed costs.
const noBackend = "no kernel backend on this machine; it runs in the guest instead"

func needs(name, what, get string, try func(*scratch) error) trial {
	return trial{Feature{Name: name, Level: Needed, For: what, Cost: noBackend, Get: get}, try}
}

func wants(name, what, cost, get string, try func(*scratch) error) trial {
	return trial{Feature{Name: name, Level: Useful, For: what, Cost: cost, Get: get}, try}
}

func module(name string) string { return fmt.Sprintf(getModule, name) }

// trials are all features, those that others stand on first.
func trials() []trial {
	return []trial{
		needs("root", "namespaces, links, qdiscs and RDMA devices", "run as root (sudo rocebed …)", tryRoot),
		needs("veth", "links", module("veth"), func(*scratch) error { return nil }), // the scratch itself
		needs("htb", "the shaper of every port", module("sch_htb"), tryQdisc("htb")),
		needs("bfifo", "the buffer of every port", getKernel, tryQdisc("bfifo")),
		needs("netem", "propagation delay, jitter", module("sch_netem"), tryQdisc("netem")),
		needs("red", "ECN marking by sch_red", module("sch_red"), tryQdisc("red")),
		needs("port-tree", "the whole tree of a switch port, with red's nodrop", getKernel, tryTree),
		needs("ebpf-tcx", "cables: forwarding and faults as programs (Linux 6.6)", getKernel, tryCable),
		needs("ecmp", "equal-cost paths by layer 4, a hash seed a switch (Linux 6.11)", getKernel, tryECMP),
		needs("rps-default", "packets of a flow on one CPU, so that links don't reorder (Linux 6.3)", getKernel, trySetting("core/rps_default_mask")),
		needs("rdma-netlink", "RDMA devices, their counters and QPs", module("ib_core"), tryNLDev),
		needs("rxe", "RoCEv2 NICs inside network namespaces (Linux 7.1)", module("rdma_rxe"), tryRxe),
		needs("uverbs", "verbs from user space", module("ib_uverbs"), tryUverbs),
		{Feature{Name: Libibverbs, Level: Needed, For: "verbs in this binary", Cost: "no kernel backend at all: the guest runs this binary too", Get: getRebuild}, tryLibibverbs},
		wants("rdma-exclusive", "RDMA devices in one namespace each, for more than 8 hosts", "fabrics of more than 8 hosts use the shared mode, which costs memory and time for every device in every namespace", "no other network namespaces when a testbed comes up", tryMode),
		wants("bpf-qdisc", "the port engine: PFC, priorities, packet memory, DCQCN (Linux 6.16, NET_SCH_BPF)", "scenarios with PFC, priorities or DCQCN run in the guest, and the marker of others is sch_red", getKernel, tryBPFQdisc),
		wants("btf", "programs that follow the kernel's own structures", "no tracing of the kernel's queues", getKernel, tryBTF),
	}
}

// Probe tries every feature in a namespace of its own and cleans up after itself. It takes about
// a second; choosing a backend asks [Capable], which only looks.
func Probe(ctx context.Context) []Feature {
	var found []Feature
	all := trials()
	if os.Geteuid() != 0 {
		for _, t := range all {
			found = append(found, t.outcome(errors.New("not tried: needs root")))
		}
		return found
	}
	for _, t := range all {
		if err := ctx.Err(); err != nil {
			found = append(found, t.outcome(err))
			continue
		}
		// Each in a namespace of its own: what one leaves behind can't spoil the next.
		err := linux.Scratch(func() error {
			s, err := newScratch()
			if err != nil {
				return err
			}
			return errors.Join(t.try(s), s.close())
		})
		found = append(found, t.outcome(err))
	}
	return found
}

func (t trial) outcome(err error) Feature {
	f := t.Feature
	f.Present = err == nil
	if err != nil {
		f.Why = err.Error()
	}
	return f
}

func tryRoot(*scratch) error {
	if os.Geteuid() != 0 {
		return errors.New("not root")
	}
	return nil
}

func tryLibibverbs(*scratch) error {
	if !ibv.Available {
		return errors.New("this binary was built without")
	}
	return nil
}
