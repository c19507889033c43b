package testbed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/testbed/compare"
)

// base has what a block of the documentation leaves out.
var base = []struct{ key, text string }{
	{"apiVersion", "apiVersion: rocebed/v1\n"},
	{"name", "name: documented\n"},
	{"topology", "topology:\n  spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 2}\n"},
	{"workloads", "workloads:\n  - {name: w, kind: write, from: [h1], to: [h2], messages: 10}\n"},
}

func TestEveryYAMLBlockOfTheDocumentationIsAValidScenario(t *testing.T) {
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, file := range append(files, "../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "```yaml\n")[1:] {
			block, _, _ := strings.Cut(part, "```")
			for _, b := range base {
				if !strings.HasPrefix(block, b.key+":") && !strings.Contains(block, "\n"+b.key+":") {
					block += b.text
				}
			}
			blocks++
			if _, err := Parse(filepath.Base(file), []byte(block)); err != nil {
				t.Errorf("%v\n%s", err, block)
			}
		}
	}
	if blocks < 7 {
		t.Errorf("only %d blocks were found", blocks)
	}
}

func TestTheTableOfBackendsIsOfTheQuickstartAsItIs(t *testing.T) {
	page, err := os.ReadFile("../docs/backends.md")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Load("../scenarios/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	table := compare.Inside(string(page), "quickstart")
	want := []string{"| " + s.Name + " | `sim` | `soft` | `kernel` |", "| verdict | pass | pass | pass |"}
	for _, x := range s.Expect {
		want = append(want, "| `"+strings.ReplaceAll(x, "|", `\|`)+"` | yes | yes | yes |")
	}
	for _, w := range s.Workloads {
		want = append(want, "| "+w.Name+": goodput | ")
	}
	for _, line := range want {
		if !strings.Contains(table, line) {
			t.Errorf("no %q in docs/backends.md: make backends", line)
		}
	}
}
