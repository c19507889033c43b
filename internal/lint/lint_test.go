package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/internal/testleak"
)

func TestMain(m *testing.M) { testleak.Main(m) }

// plant writes a module with the files and checks it.
func plant(t *testing.T, files map[string]string) []Finding {
	t.Helper()
	root := t.TempDir()
	files["go.mod"] = "module " + module + "\n\ngo 1.26\n"
	for name, src := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(src), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found, err := Check(root)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// pkg is a formatted file with a package comment.
func pkg(name, rest string) string {
	return "// Package " + name + " is planted.\npackage " + name + "\n\n" + rest
}

// guarded is a test file of a package whose tests fail on leaks.
func guarded(name, imports, rest string) string {
	return "package " + name + "\n\nimport (\n\t\"" + imports + "\"\n\t\"testing\"\n\n\t\"" + module +
		"/internal/testleak\"\n)\n\nfunc TestMain(m *testing.M) { testleak.Main(m) }\n\n" + rest + "\n"
}

func TestEachRuleFindsAPlantedFaultAndPassesItsCure(t *testing.T) {
	cases := []struct {
		name, file string
		bad, good  string
		want       string // rule and a part of what is said
	}{
		{"an import that the table forbids", "workloads/x.go",
			pkg("workloads", "import _ \"github.com/rocebed/rocebed/testbed/linux\"\n"),
			pkg("workloads", "import _ \"github.com/rocebed/rocebed/topo\"\n"),
			"workloads/x.go:4:8: workloads must not import testbed/linux; it may import workloads/verbs, topo, topo/strict, datapath/loop (imports)"},
		{"a folder that is no room", "attic/x.go",
			pkg("attic", "var X int\n"), pkg("attic", "var X int\n"),
			"attic is no room"},
		{"the operating system in a pure room", "datapath/rnic/x.go",
			pkg("rnic", "import \"os\"\n\nvar X = os.Args\n"),
			pkg("rnic", "import \"net/netip\"\n\nvar X netip.Addr\n"),
			"must not import os"},
		{"the machine's clock where a run is reproducible", "faults/x.go",
			pkg("faults", "import \"time\"\n\nvar X = time.Now()\n"),
			pkg("faults", "import \"time\"\n\nvar X = time.Second\n"),
			"faults/x.go:6:9: time.Now reads the machine's clock"},
		{"the clock under another name", "datapath/asic/x.go",
			pkg("asic", "import t \"time\"\n\nvar X = t.NewTimer(1)\n"),
			pkg("asic", "import t \"time\"\n\nvar X t.Duration\n"),
			"time.NewTimer reads the machine's clock"},
		{"the global random generator", "workloads/x_test.go",
			"package workloads\n\nimport \"math/rand/v2\"\n\nvar X = rand.IntN(3)\n",
			guarded("workloads", "math/rand/v2", "var X = rand.New(rand.NewPCG(1, 2)).IntN(3)"),
			"rand.IntN uses the global generator"},
		{"randomness that can't be seeded", "datapath/roce/x.go",
			pkg("roce", "import \"crypto/rand\"\n\nvar X = rand.Reader\n"), pkg("roce", "var X int\n"),
			"crypto/rand.Reader can't be seeded"},
		{"a sleep in a test", "testbed/linux/x_test.go",
			"package linux\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n",
			"package linux\n\nimport (\n\t\"testing\"\n\t\"time\"\n\n\t\"" + module + "/internal/testleak\"\n)\n\nfunc TestMain(m *testing.M) { testleak.Main(m) }\n\nfunc f() { <-time.After(1) }\n",
			"no sleeps in tests"},
		{"map order that reaches a result", "workloads/x.go",
			pkg("workloads", "func f(m map[int]int) (s []int) {\n\tfor k, v := range m {\n\t\tif v > 0 {\n\t\t\ts = append(s, k)\n\t\t}\n\t\tprintln(k)\n\t}\n\treturn s\n}\n"),
			pkg("workloads", "func f(m map[int]int) (s []int) {\n\tfor k := range m {\n\t\ts = append(s, k)\n\t}\n\treturn s\n}\n"),
			"workloads/x.go:5:2: ranging over a map has no order"},
		{"map order behind a mark with no reason", "faults/x.go",
			pkg("faults", "func f(m map[int]int) {\n\t//lint:maporder\n\tfor k := range m {\n\t\tprintln(k)\n\t}\n}\n"),
			pkg("faults", "func f(m map[int]int) {\n\t//lint:maporder each is printed on its own\n\tfor k := range m {\n\t\tprintln(k)\n\t}\n}\n"),
			"ranging over a map has no order"},
		{"map order through an iterator", "datapath/loop/x.go",
			pkg("loop", "import \"maps\"\n\nfunc f(m map[int]int) {\n\tfor k := range maps.Keys(m) {\n\t\tprintln(k)\n\t}\n}\n"),
			pkg("loop", "import (\n\t\"maps\"\n\t\"slices\"\n)\n\nfunc f(m map[int]int) {\n\tfor _, k := range slices.Sorted(maps.Keys(m)) {\n\t\tprintln(k)\n\t}\n}\n"),
			"ranging over maps.Keys"},
		{"keys collected and left as they come", "datapath/loop/x.go",
			pkg("loop", "import (\n\t\"maps\"\n\t\"slices\"\n)\n\nfunc f(m map[int]int) []int { return slices.Collect(maps.Keys(m)) }\n"),
			pkg("loop", "import (\n\t\"maps\"\n\t\"slices\"\n)\n\nfunc f(m map[int]int) []int { return slices.Sorted(maps.Keys(m)) }\n"),
			"slices.Collect of a map"},
		{"a command string for a shell", "testbed/guest/x.go",
			pkg("guest", "import \"os/exec\"\n\nvar X = exec.Command(\"/bin/sh\", \"-ec\", \"ip link\")\n"),
			pkg("guest", "import \"os/exec\"\n\nvar X = exec.Command(\"ip\", \"link\")\n"),
			"a command string for /bin/sh"},
		{"a command string for a shell with a context", "testbed/guest/x.go",
			pkg("guest", "import \"os/exec\"\n\nvar X = exec.CommandContext(nil, \"bash\", \"-c\", \"ip link\")\n"),
			pkg("guest", "import \"os/exec\"\n\nvar X = exec.CommandContext(nil, \"bash\", \"script\")\n"),
			"a command string for bash"},
		{"a namespace switched by hand", "testbed/linux/x.go",
			pkg("linux", "import \"syscall\"\n\nvar X = syscall.CLONE_NEWNET\n"),
			pkg("linux", "import \"syscall\"\n\nvar X = syscall.CLONE_NEWNS\n"),
			"syscall.CLONE_NEWNET enters a namespace by itself"},
		{"a file that is not formatted", "topo/x.go",
			pkg("topo", "var  X int\n"), pkg("topo", "var X int\n"),
			"topo/x.go:4:1: not formatted"},
		{"a file of more than 500 lines", "topo/x.go",
			pkg("topo", "var (\n"+strings.Repeat("\t_ int\n", 500)+")\n"), pkg("topo", "var X int\n"),
			"505 lines; a file is one idea"},
		{"a package with no comment", "topo/x.go",
			"package topo\n", pkg("topo", "var X int\n"),
			"topo/x.go:1:1: package topo has no package comment"},
		{"tests that may leak", "topo/x_test.go",
			"package topo\n\nimport \"testing\"\n\nfunc TestX(*testing.T) {}\n",
			"package topo\n\nimport (\n\t\"testing\"\n\n\t\"" + module + "/internal/testleak\"\n)\n\nfunc TestMain(m *testing.M) { testleak.Main(m) }\n",
			"topo/x_test.go:1:1: topo's tests may leak"},
		{"a mirror's host name", "docs/x.md",
			"See http://deb.example.org/debian for it.\n", "See the machine's own sources for it.\n",
			"docs/x.md:1:12: deb.example.org looks like a registry or a mirror"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			others := map[string]string{"topo/doc.go": pkg("topo", ""), "testbed/linux/doc.go": pkg("linux", "")}
			for name, src := range others {
				others[name] = strings.TrimSuffix(src, "\n\n") + "\n"
			}
			delete(others, filepath.Dir(c.file)+"/doc.go")
			others[c.file] = c.bad
			expect(t, plant(t, others), c.want)
			if c.bad != c.good {
				others[c.file] = c.good
				if strings.HasSuffix(c.file, "_test.go") {
					others[filepath.Dir(c.file)+"/doc.go"] = pkg(filepath.Base(filepath.Dir(c.file)), "var Y int\n")
				}
				for _, f := range plant(t, others) {
					t.Errorf("the cure is refused too: %s", f)
				}
			}
		})
	}
}

func TestAFileOfMoreThan400LinesIsAWarning(t *testing.T) {
	found := plant(t, map[string]string{"topo/x.go": pkg("topo", "var (\n"+strings.Repeat("\t_ int\n", 420)+")\n")})
	expect(t, found, "warning: 425 lines")
	if len(found) != 1 || !found[0].Warning {
		t.Errorf("want one warning, found %v", found)
	}
}

func TestARawNamespaceLibraryIsRefusedOutsideItsRoom(t *testing.T) {
	f := parse(t, "testbed/kernel/x.go", pkg("kernel", `import "github.com/containernetworking/plugins/pkg/ns"

func f(n ns.NetNS) error { return n.Do(func(ns.NetNS) error { return nil }) }
`))
	found := checkNamespaces(f)
	expect(t, found, "testbed/kernel/x.go:4:8: github.com/containernetworking/plugins/pkg/ns enters a namespace by itself")
	expect(t, found, "testbed/kernel/x.go:6:35: ns.Do enters a namespace by itself")
	f.Path = "testbed/linux/other.go"
	expect(t, checkNamespaces(f), "ns.Do enters a namespace by itself")
	f.Path = "testbed/linux/namespace.go"
	if found := checkNamespaces(f); len(found) > 0 {
		t.Errorf("the one helper itself is refused: %v", found)
	}
}

func TestTheTableNamesOnlyRoomsOfItself(t *testing.T) {
	for _, r := range rooms {
		for _, m := range r.may {
			if got, ok := roomOf(m); !ok || got.dir != m {
				t.Errorf("room %s may import %s, which is no line of the table", r.dir, m)
			}
		}
	}
}

func TestTheTableHasNoCycle(t *testing.T) {
	may := map[string][]string{}
	for _, r := range rooms {
		may[r.dir] = r.may
	}
	var walk func(room string, path []string)
	walk = func(room string, path []string) {
		for _, p := range path {
			if p == room {
				t.Fatalf("cycle: %s", strings.Join(append(path, room), " → "))
			}
		}
		for _, m := range may[room] {
			walk(m, append(path, room))
		}
	}
	for _, r := range rooms {
		walk(r.dir, nil)
	}
}

func TestTheDesignsTableIsTheOneEnforced(t *testing.T) {
	// One line of docs/architecture.md a room: "| `datapath/loop` | … | imports |".
	doc, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(line, "|")
		if len(cells) == 5 {
			lines[strings.Trim(cells[1], " `/")] = cells[3]
		}
	}
	for _, r := range rooms {
		imports, ok := lines[r.dir]
		if !ok {
			t.Errorf("docs/architecture.md has no line for the room %s", r.dir)
			continue
		}
		var documented []string
		for i, part := range strings.Split(imports, "`") {
			if i%2 == 1 {
				documented = append(documented, expand(part)...)
			}
		}
		if want, got := unique(r.may), unique(documented); want != got {
			t.Errorf("%s: the table allows\n  %s\ndocs/architecture.md says\n  %s", r.dir, want, got)
		}
	}
}

func expect(t *testing.T, found []Finding, want string) {
	t.Helper()
	var all []string
	for _, f := range found {
		if strings.Contains(f.String(), want) {
			return
		}
		all = append(all, f.String())
	}
	t.Errorf("want a finding with %q, found:\n%s", want, strings.Join(all, "\n"))
}
