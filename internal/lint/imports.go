package main

import (
	"slices"
	"strings"
)

// room is a folder, with everything below it that has no line of its own, and the rooms that
// it may import besides itself. Where a room is allowed, so are its own folders without a line.
type room struct {
	dir string
	may []string
}

// What the rooms of the emulated silicon, the descriptions and the harness stand on.
var (
	silicon = []string{"datapath/loop", "datapath/roce", "datapath/link", "datapath/dcqcn", "datapath/rnic", "datapath/asic"}
	plain   = []string{"topo", "topo/strict", "faults", "workloads", "workloads/verbs", "datapath/loop", "datapath/roce", "datapath/dcqcn"}
	below   = append([]string{"testbed/fabric", "testbed/metrics"}, plain...)
)

// rooms is the import table of docs/architecture.md: change both or neither.
var rooms = []room{
	{"topo", with("topo/strict")},
	{"topo/strict", nil},
	{"datapath/loop", nil},
	{"datapath/roce", nil},
	{"datapath/dcqcn", with("datapath/loop")},
	{"datapath/link", with("datapath/loop", "datapath/roce")},
	{"datapath/rnic", with("workloads/verbs", "workloads/verbs/conformance", "datapath/roce", "datapath/link", "datapath/dcqcn", "datapath/loop")},
	{"datapath/asic", with("datapath/roce", "datapath/link", "datapath/dcqcn", "datapath/loop")},
	{"datapath/bench", with(silicon, "workloads/verbs", "topo")},
	{"faults", with("topo", "topo/strict", "datapath/roce")},
	{"workloads", with("workloads/verbs", "topo", "topo/strict", "datapath/loop")},
	{"workloads/verbs", with("datapath/loop")},
	{"workloads/verbs/conformance", with("workloads/verbs", "datapath/loop")},
	{"workloads/verbs/ibv", with("workloads/verbs", "datapath/loop")},

	{"testbed/metrics", nil},
	{"testbed/fabric", with("testbed/metrics", "topo", "topo/strict", "faults", "workloads/verbs", "datapath/loop", "datapath/dcqcn")},
	{"testbed/linux", below},
	{"testbed/kernel", with("testbed/linux", "testbed/silicon", "workloads/verbs/ibv", silicon, below)},
	{"testbed/silicon", with(silicon, below)},
	{"testbed/soft/remote", with("workloads/verbs/conformance", silicon, below)}, // the suite is for its tests
	{"testbed/soft", with("testbed/linux", "testbed/soft/remote", "testbed/silicon", silicon, below)},
	{"testbed/sim", with("testbed/silicon", silicon, below)},
	{"testbed/hostfault", below},
	{"testbed/crosstraffic", with("testbed/linux", "datapath/rnic", below)},
	{"testbed/mixed", with("testbed/linux", "testbed/kernel", "testbed/soft", below)},
	{"testbed/guest", with("images", below)},
	{"testbed/keeper", with("testbed/linux", "testbed/guest", below)},
	{"testbed/record", with("testbed/metrics", plain)},
	{"testbed/expect", with("testbed/record", "testbed/metrics", "topo/strict", "topo")},
	{"testbed/analysis", with("testbed/record", "testbed/metrics", plain)},
	{"testbed/compare", with("testbed/record", "testbed/metrics")},
	{"testbed/report", with("testbed/analysis", "testbed/compare", "testbed/record", "testbed/metrics", plain)},
	{"testbed", with("testbed/linux", "testbed/kernel", "testbed/soft", "testbed/sim", "testbed/mixed", "testbed/hostfault", "testbed/crosstraffic", "testbed/guest", "testbed/keeper",
		"testbed/record", "testbed/expect", "testbed/analysis", "testbed/compare", "testbed/report", below)},

	{"images", with("topo")},
	{"scenarios/incidents", with("testbed", "testbed/record", "testbed/metrics", "testbed/report", "topo/strict")},
	{"suites", with("scenarios/incidents", "internal/testleak", "internal/testneed", "testbed", "testbed/linux", "testbed/kernel", "testbed/soft", "testbed/sim", "testbed/mixed", "testbed/guest", "testbed/keeper",
		"testbed/record", "testbed/report", "testbed/analysis", "testbed/compare", "workloads/verbs/conformance", "workloads/verbs/ibv", silicon, below)},
	{"cmd", with("scenarios/incidents", "testbed", "testbed/linux", "testbed/kernel", "testbed/guest", "testbed/keeper", "testbed/record",
		"testbed/analysis", "testbed/compare", "testbed/report", "images", below)},
	{"internal/lint", nil},
	{"internal/testleak", nil},
	{"internal/testneed", nil},
	{"internal/bareloop", with("topo")},
	{"internal/leftover", with("internal/testleak")},
}

// forTests is what any room's tests may import besides what the room may.
var forTests = []string{"internal/testleak", "internal/testneed", "internal/bareloop", "topo", "topo/strict", "testbed/metrics"}

// heldAgainst is what a room's tests may import besides that, as it is measured by it.
var heldAgainst = map[string][]string{
	"testbed/kernel": {"testbed/silicon", "datapath/link"}, // cables do to packets what software nodes' wires do, bit for bit
}

// with joins names and lists of names.
func with(parts ...any) []string {
	var out []string
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			out = append(out, p)
		case []string:
			out = append(out, p...)
		}
	}
	return out
}

// roomOf is the table's line for a folder: the longest that it lies in.
func roomOf(dir string) (room, bool) {
	var best room
	found := false
	for _, r := range rooms {
		if within(dir, r.dir) && (!found || len(r.dir) > len(best.dir)) {
			best, found = r, true
		}
	}
	return best, found
}

func checkImports(f *File) []Finding {
	var out []Finding
	here, ok := roomOf(f.Dir())
	if !ok {
		return []Finding{f.at(f.AST.Package, "imports", "%s is no room: add it to the table in internal/lint/imports.go and to docs/architecture.md", f.Dir())}
	}
	for _, i := range f.AST.Imports {
		dir, ours := strings.CutPrefix(importPath(i), module+"/")
		if !ours {
			continue
		}
		there, ok := roomOf(dir)
		if !ok {
			out = append(out, f.at(i.Pos(), "imports", "%s is no room of the table in internal/lint/imports.go", dir))
			continue
		}
		if there.dir == here.dir || slices.Contains(here.may, there.dir) {
			continue
		}
		if f.IsTest() && (slices.Contains(forTests, there.dir) || slices.Contains(heldAgainst[here.dir], there.dir)) {
			continue
		}
		may := "none of our rooms"
		if len(here.may) > 0 {
			may = strings.Join(here.may, ", ")
		}
		out = append(out, f.at(i.Pos(), "imports", "%s must not import %s; it may import %s", here.dir, dir, may))
	}
	return out
}

// pure rooms touch no operating system. The provider of libibverbs is one by design.
var pure = []string{"topo", "faults", "workloads", "datapath"}

// systemFree says whether dir belongs to a room that touches no operating system.
func systemFree(f *File) bool {
	return f.In(pure...) && !f.In("workloads/verbs/ibv")
}

// ofTheSystem are packages through which the operating system is touched.
var ofTheSystem = []string{"os", "os/exec", "os/signal", "net", "net/http", "syscall", "unsafe", "C", "log/slog",
	"golang.org/x/sys", "github.com/vishvananda", "github.com/containernetworking", "github.com/cilium/ebpf", "github.com/florianl"}

// layouts are the files of such rooms that look at memory by its layout, and why; it is no system's business.
var layouts = map[string]string{
	"datapath/link/frame.go": "a frame's timer leads back to the frame, without a closure each",
}

func checkSystemImports(f *File) []Finding {
	if !systemFree(f) || f.IsTest() {
		return nil
	}
	var out []Finding
	for _, i := range f.AST.Imports {
		p := importPath(i)
		if p == "unsafe" && layouts[f.Path] != "" {
			continue
		}
		if slices.ContainsFunc(ofTheSystem, func(s string) bool {
			return p == s || (strings.Contains(s, ".") && strings.HasPrefix(p, s+"/"))
		}) {
			out = append(out, f.at(i.Pos(), "pure", "%s touches no operating system, so it must not import %s: take an interface or a value instead", f.Dir(), p))
		}
	}
	return out
}
