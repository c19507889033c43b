package kernel

import (
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

// sharedUpTo is the number of hosts up to which auto chooses shared: there a device costs one
// more in every namespace, which at 12 namespaces is 7 MB and 40 ms a device and grows with
// their number. rdma_cm needs it: a device that was moved has no QP1.
const sharedUpTo = 8

// RDMAModeFor is the namespace mode that a topology gets: what the settings say, or for auto
// shared up to 8 hosts and exclusive above.
func RDMAModeFor(t *topo.Topology, s fabric.NICSettings) fabric.RDMAMode {
	if s.RDMA == fabric.RDMAShared || s.RDMA == fabric.RDMAExclusive {
		return s.RDMA
	}
	if len(t.Hosts()) <= sharedUpTo {
		return fabric.RDMAShared
	}
	return fabric.RDMAExclusive
}

// What things cost a guest, measured on Linux 7.3.4, in KiB.
const (
	memoryBase          = 640 << 10 // kernel, initramfs, the run's own process
	memoryHost          = 24 << 10  // a host's loop, device handle and registered memory
	memoryNamespace     = 1 << 10
	memoryLink          = 512
	memoryDevice        = 2 << 10
	memoryCompat        = 768 // a device's double in one more namespace, in shared mode
	memoryGranule       = 128 << 10
	memoryLeast         = 1 << 20
	kibInMiB        int = 1 << 10
)

// GuestMemoryMB is the memory in MiB that a guest needs for a topology: with a shared RDMA
// subsystem it grows with devices times namespaces, and a guest with too little dies.
func GuestMemoryMB(t *topo.Topology, s fabric.NICSettings) int {
	nodes, hosts, devices := len(t.Nodes)+1, len(t.Hosts()), len(t.NICs())
	kib := memoryBase + hosts*memoryHost + nodes*memoryNamespace + len(t.Links)*memoryLink + devices*memoryDevice
	if RDMAModeFor(t, s) == fabric.RDMAShared {
		kib += devices * nodes * memoryCompat
	}
	kib = max(kib, memoryLeast)
	return (kib + memoryGranule - 1) / memoryGranule * memoryGranule / kibInMiB
}
