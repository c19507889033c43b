package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// graphOf runs the graph command on a scenario and gives what it prints.
func graphOf(t *testing.T, scenario string, args ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(file, []byte(scenario), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c := newGraphCommand()
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetOut(&out)
	c.SetArgs(append([]string{file}, args...))
	err := c.Execute()
	return out.String(), err
}

const graphScenario = "topology: {spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 1}}\nworkloads: not yet"

func TestGraphListsThePathsBetweenTwoNICs(t *testing.T) {
	got, err := graphOf(t, graphScenario, "--paths", "h1", "h2:eth0")
	want := "h1:eth0 > leaf1:eth1 > spine1:eth1 > leaf2:eth0 > h2:eth0\nh1:eth0 > leaf1:eth2 > spine2:eth1 > leaf2:eth0 > h2:eth0\n"
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
	if _, err := graphOf(t, graphScenario, "--paths", "h1", "h9"); err == nil {
		t.Error("found paths to a host that isn't there")
	}
}

func TestGraphDrawsWhatTheFileNameAsksFor(t *testing.T) {
	dir := t.TempDir()
	for file, begins := range map[string]string{"a.svg": "<svg", "a.mmd": "graph TD", "a.json": "{", "a.gv": "graph \"", "a": "graph \""} {
		out := filepath.Join(dir, file)
		if _, err := graphOf(t, graphScenario, "-o", out); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(out)
		if err != nil || !strings.HasPrefix(string(got), begins) {
			t.Errorf("%s begins with %.20q (%v)", file, got, err)
		}
	}
	if got, err := graphOf(t, graphScenario, "--format", "mermaid"); err != nil || !strings.HasPrefix(got, "graph TD") {
		t.Errorf("%v %.20q", err, got)
	}
}

func TestAMistakeInATopologyIsAUsageErrorWithItsPlace(t *testing.T) {
	_, err := graphOf(t, "topology:\n  spine-leaf: {spine: 2}")
	if err == nil || codeOf(err) != exitUsage || !strings.Contains(err.Error(), `:2:16: unknown key "spine" in topology.spine-leaf (did you mean "spines"?)`) {
		t.Error(err)
	}
}
