package testleak

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
)

// Machine is what there is on the machine that rocebed's commands make: named network
// namespaces, links of this namespace, mounts, RDMA devices, pinned programs, BPF programs and maps by number, testbeds.
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
	for _, thing := range bpfObjects() {
		m.things[thing] = true
	}
	return m
}

// bpfKind begins the name of a BPF program or map: whose it is nobody can say.
const bpfKind = "BPF "

// bpfObjects are the kernel's BPF programs and maps that are called as rocebed's are.
func bpfObjects() (out []string) {
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if err != nil {
			break
		}
		id = next
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue // it is gone
		}
		if info, err := p.Info(); err == nil && strings.HasPrefix(info.Name, "rb_") {
			out = append(out, fmt.Sprintf("%sprogram %d %s", bpfKind, id, info.Name))
		}
		p.Close()
	}
	for id := ebpf.MapID(0); ; {
		next, err := ebpf.MapGetNextID(id)
		if err != nil {
			break
		}
		id = next
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			continue
		}
		if info, err := m.Info(); err == nil && strings.HasPrefix(info.Name, "rb_") {
			out = append(out, fmt.Sprintf("%smap %d %s", bpfKind, id, info.Name))
		}
		m.Close()
	}
	return out
}

// Left is what there is in now and wasn't in m, sorted, besides what living testbeds hold
// whose holder doesn't have the environment variable mark (KEY=value), and besides the
// processes that do have it, which Left adds. BPF programs and maps count while there is no such testbed: nothing tells them apart.
func (m Machine) Left(now Machine, mark string) []string {
	marked := ProcessesWith(mark)
	held, beds := heldBy(stateDir, func(pid int) bool { _, ok := marked[pid]; return !ok })
	var out []string
	for thing := range now.things {
		name := filepath.Base(thing)
		if strings.HasPrefix(thing, bpfKind) && len(beds) > 0 {
			continue
		}
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
