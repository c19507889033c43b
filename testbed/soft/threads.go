//go:build linux

package soft

import (
	"cmp"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/topo"
)

// inlineKernel is the first Linux that does a packet's way through the backlog before the call that sends it returns, however busy
// it is; those before leave it to ksoftirqd at times ("Revert softirq: Let ksoftirqd do its job").
var inlineKernel = [2]int{6, 4}

// spread chooses a CPU for each node, where the kernel is such that frames of a thread which moves between CPUs could
// overtake each other. Nodes with more ports have more to do; they are placed first, each where the
// fewest ports are so far. Elsewhere, and with one CPU, none is chosen: the scheduler balances better.
func spread(t *topo.Topology) []int {
	out := make([]int, len(t.Nodes))
	var allowed unix.CPUSet
	var cpus []int
	if unix.SchedGetaffinity(0, &allowed) == nil {
		for i := range len(allowed) * 64 {
			if allowed.IsSet(i) {
				cpus = append(cpus, i)
			}
		}
	}
	order := make([]int, len(t.Nodes))
	for i := range order {
		order[i], out[i] = i, -1
	}
	_, major, minor, err := kernelVersion()
	inline := err == nil && (major > inlineKernel[0] || major == inlineKernel[0] && minor >= inlineKernel[1])
	if inline || len(cpus) < 2 {
		return out
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(t.Nodes[b].Ports), len(t.Nodes[a].Ports)) })
	load := make([]int, len(cpus))
	for _, i := range order {
		least := 0
		for c := range load {
			if load[c] < load[least] {
				least = c
			}
		}
		load[least] += len(t.Nodes[i].Ports)
		out[i] = cpus[least]
	}
	return out
}

// niceness is that of a process with a living fabric, where it may choose. A node's thread waits for others of its process
// now and then, in the runtime's locks: one that a busy machine has put aside meanwhile holds it up for tens of milliseconds.
const niceness = -15

var (
	threadsMu sync.Mutex
	wanted    int // threads that living fabrics need
	before    int // GOMAXPROCS without them
	plain     int // niceness without them
)

// moreThreads lets as many nodes run at once, as the kernel schedules them, besides what else runs: with fewer
// processors of Go's than threads that are ready, the runtime would have one wait for another for 10 ms. And it has the kernel schedule
// the whole process before others. The function it returns takes that back.
func moreThreads(nodes int) (done func()) {
	threadsMu.Lock()
	defer threadsMu.Unlock()
	if wanted == 0 {
		before = runtime.GOMAXPROCS(0)
		if attr, err := unix.SchedGetAttr(0, 0); err == nil {
			plain = int(attr.Nice)
			renice(niceness)
		}
	}
	wanted += nodes
	runtime.GOMAXPROCS(before + wanted)
	return func() {
		threadsMu.Lock()
		defer threadsMu.Unlock()
		wanted -= nodes
		runtime.GOMAXPROCS(before + wanted)
		if wanted == 0 {
			renice(plain)
		}
	}
}

// renice sets the niceness of all threads; those to come have that of the ones that start them. Who may not choose keeps what
// they have.
func renice(nice int) {
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, t := range tasks {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, tid, nice)
		}
	}
}
