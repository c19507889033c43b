package testleak

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Machine is what there is on the machine that rocebed's commands make: named network
// namespaces, links of this namespace, mounts, RDMA devices, pinned programs, testbeds.
type Machine struct{ things map[string]bool }

// Where the things of a machine are listed, a folder a kind.
var machineFolders = map[string]string{
	"network namespace": netnsDir,
	"link":              "/sys/class/net",
	"rdma link":         "/sys/class/infiniband",
	"pinned program":    "/sys/fs/bpf",
	"testbed":           stateDir,
}

// LookAtMachine lists the machine's things.
func LookAtMachine() Machine {
	m := Machine{map[string]bool{}}
	for kind, dir := range machineFolders {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			m.things[kind+" "+filepath.Join(dir, e.Name())] = true
		}
	}
	for point := range mounts() {
		if point != netnsDir && !strings.HasPrefix(point, netnsDir+"/") { // iproute2 binds the folder to itself
			m.things["mount "+point] = true
		}
	}
	return m
}

// Left is what there is in now and wasn't in m, sorted, besides what living testbeds hold
// whose holder doesn't have the environment variable mark (KEY=value), and besides the
// processes that do have it, which Left adds.
func (m Machine) Left(now Machine, mark string) []string {
	marked := ProcessesWith(mark)
	held, beds := heldBy(stateDir, func(pid int) bool { _, ok := marked[pid]; return !ok })
	var out []string
	for thing := range now.things {
		name := filepath.Base(thing)
		if !m.things[thing] && !slices.Contains(beds, name) && !bytes.Contains(held, []byte(name)) {
			out = append(out, thing)
		}
	}
	for pid, cmd := range marked {
		out = append(out, fmt.Sprintf("process %d %s", pid, cmd))
	}
	slices.Sort(out)
	return out
}

// ProcessesWith is every process that was started with the environment variable, this one
// aside: pid → command line.
func ProcessesWith(mark string) map[int]string {
	out := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil || !slices.Contains(strings.Split(string(b), "\x00"), mark) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(f, "/proc/%d/environ", &pid); err != nil || pid == os.Getpid() {
			continue
		}
		cmd, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		out[pid] = strings.TrimSpace(strings.ReplaceAll(string(cmd), "\x00", " "))
	}
	return out
}
