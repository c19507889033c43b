package testleak

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// Where namespaces are bound by name, and where testbeds keep their state.
const (
	netnsDir = "/run/netns"
	stateDir = "/run/rocebed"
)

// system is what this process holds of the machine: descriptors by number, children by pid,
// mounts by mount point, named network namespaces, and the namespaces that its threads are in.
type system struct {
	fds, children, mounts, netns, threads map[string]string
}

func takeSystem() system {
	// The runtime's poller opens its descriptors at the first use; let that be before.
	if r, w, err := os.Pipe(); err == nil {
		r.Close()
		w.Close()
	}
	return system{
		fds:      descriptors(),
		children: childProcesses(os.Getpid()),
		mounts:   mounts(),
		netns:    namedNamespaces(netnsDir),
		threads:  threadNamespaces(),
	}
}

// leaks compares now with s, in a stable order.
func (s system) leaks(now system) []string {
	var out []string
	more := func(what string, was, is map[string]string) {
		for k, v := range is {
			if old, ok := was[k]; !ok || old != v {
				out = append(out, fmt.Sprintf("%s %s %s", what, k, v))
			}
		}
	}
	more("descriptor", s.fds, now.fds)
	more("child process", s.children, now.children)
	more("thread in another network namespace:", s.threads, now.threads)

	held := heldByOthers(stateDir, os.Getpid())
	for name := range now.netns {
		if _, ok := s.netns[name]; !ok && !bytes.Contains(held, []byte(name)) {
			out = append(out, "network namespace "+filepath.Join(netnsDir, name))
		}
	}
	for point, v := range now.mounts {
		if point == netnsDir || strings.HasPrefix(point, netnsDir+"/") || bytes.Contains(held, []byte(point)) {
			continue // counted by its name above, or another testbed's
		}
		if _, ok := s.mounts[point]; !ok {
			out = append(out, fmt.Sprintf("mount %s (%s)", point, v))
		}
	}
	sort.Strings(out)
	return out
}

func descriptors() map[string]string {
	out := map[string]string{}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return out
	}
	for _, e := range entries {
		// The descriptor that listed the directory is closed by now: its link can't be read.
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			out[e.Name()] = target
		}
	}
	return out
}

// childProcesses is every process whose parent is pid, zombies too: a child that nobody
// waited for is left behind as well.
func childProcesses(pid int) map[string]string {
	out := map[string]string{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range stats {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it ended meanwhile
		}
		// pid (comm) state ppid …; comm may hold anything, also parentheses.
		open, shut := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
		if open < 0 || shut < open {
			continue
		}
		rest := strings.Fields(string(b[shut+1:]))
		if len(rest) < 2 || rest[1] != strconv.Itoa(pid) {
			continue
		}
		out[strings.TrimSpace(string(b[:open]))] = string(b[open : shut+1])
	}
	return out
}

func mounts() map[string]string {
	out := map[string]string{}
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return out
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 2 {
			out[f[1]] = f[2]
		}
	}
	return out
}

func namedNamespaces(dir string) map[string]string {
	out := map[string]string{}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		out[e.Name()] = ""
	}
	return out
}

// home is the network namespace that the process started in.
var home, _ = os.Readlink("/proc/self/ns/net")

// threadNamespaces is the threads of this process that are not in the namespace it started
// in: a thread that was switched and handed back to the scheduler poisons what runs on it next.
func threadNamespaces() map[string]string {
	out := map[string]string{}
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, t := range tasks {
		if ns, err := os.Readlink("/proc/self/task/" + t.Name() + "/ns/net"); err == nil && ns != home {
			out[t.Name()] = ns
		}
	}
	return out
}

// heldByOthers is all that the state folders of testbeds say whose lock is held by a living
// process other than pid.
func heldByOthers(dir string, pid int) []byte {
	all, _ := heldBy(dir, func(p int) bool { return p != pid })
	return all
}

// heldBy is all that the state folders say, and the names of the testbeds, whose lock is held
// by a living process that counts.
func heldBy(dir string, counts func(pid int) bool) (all []byte, names []string) {
	holders := lockHolders()
	beds, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, bed := range beds {
		files, _ := filepath.Glob(filepath.Join(bed, "*"))
		held := false
		for _, f := range append(files, bed) {
			if p, ok := holders[inode(f)]; ok && counts(p) {
				held = true
			}
		}
		if !held {
			continue
		}
		names = append(names, filepath.Base(bed))
		for _, f := range files {
			if st, err := os.Stat(f); err != nil || !st.Mode().IsRegular() {
				continue
			}
			b, _ := os.ReadFile(f)
			all = append(append(all, b...), '\n')
		}
	}
	return all, names
}

// lockHolders reads /proc/locks: inode → pid of the holder.
func lockHolders() map[uint64]int {
	out := map[uint64]int{}
	b, err := os.ReadFile("/proc/locks")
	if err != nil {
		return out
	}
	for line := range strings.Lines(string(b)) {
		// 1: FLOCK  ADVISORY  WRITE 1234 00:1a:5678 0 EOF
		f := strings.Fields(line)
		if len(f) < 6 || f[1] == "->" {
			continue
		}
		p, err1 := strconv.Atoi(f[4])
		dev := strings.Split(f[5], ":")
		ino, err2 := strconv.ParseUint(dev[len(dev)-1], 10, 64)
		if err1 == nil && err2 == nil {
			out[ino] = p
		}
	}
	return out
}
