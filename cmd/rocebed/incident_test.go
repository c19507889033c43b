package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/scenarios/incidents"
)

func TestIncidentsAreListedAndTold(t *testing.T) {
	code, stdout, stderr := invoke(t, "incident", "list")
	if code != 0 || strings.Count(stdout, "\n") != len(incidents.All()) || !strings.Contains(stdout, "victim-flow") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	code, stdout, _ = invoke(t, "incident", "list", "--json")
	var all []incidents.Incident
	if err := json.Unmarshal([]byte(stdout), &all); code != 0 || err != nil || len(all) != len(incidents.All()) {
		t.Errorf("exit code %d, %v: %s", code, err, stdout)
	}
	code, stdout, _ = invoke(t, "incident", "show", "8")
	for _, want := range []string{"victim flow", "SIGCOMM 2015", "-nics: {dcqcn: off}", "+nics: {dcqcn: paper}", "apiVersion: rocebed/v1"} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, no %q in\n%s", code, want, stdout)
		}
	}
}

func TestAnIncidentsFileIsAScenario(t *testing.T) {
	for _, cure := range [][]string{nil, {"--cure"}} {
		code, stdout, _ := invoke(t, append([]string{"incident", "show", "slow-receiver", "--file"}, cure...)...)
		file := filepath.Join(t.TempDir(), "it.yaml")
		if err := os.WriteFile(file, []byte(stdout), 0o600); code != 0 || err != nil {
			t.Fatal(code, err)
		}
		if code, _, stderr := invoke(t, "validate", file); code != 0 {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	}
}

func TestAnIncidentHappensAndIsCured(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "the symptom is there"},
		{[]string{"--cure"}, "the symptom is gone"},
	} {
		args := append([]string{"incident", "run", "ecn-above-xoff", "--out", filepath.Join(t.TempDir(), "r")}, c.args...)
		if code, stdout, stderr := invoke(t, args...); code != 0 || !strings.Contains(stdout, "incident 9, ecn-above-xoff: "+c.says) {
			t.Errorf("%q: exit code %d: %s%s", args, code, stdout, stderr)
		}
	}
	code, stdout, _ := invoke(t, "incident", "run", "9", "--json", "--out", filepath.Join(t.TempDir(), "r"))
	var r incidents.Result
	if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil || !r.Symptom || r.Backend != "sim" || len(r.Figures) != 4 || r.Summary.Verdict != "pass" {
		t.Errorf("exit code %d, %v: %s", code, err, stdout)
	}
}

func TestATableOfIncidentsIsPrintedInThreeWays(t *testing.T) {
	for want, flags := range map[string][]string{
		"symptom seen":                    nil,
		"| 14 | `cnp-starved` | `sim` | ": {"--markdown"},
		`"incident":"cnp-starved"`:        {"--json"},
	} {
		args := append([]string{"incident", "table", "cnp-starved", "--out", filepath.Join(t.TempDir(), "r")}, flags...)
		if code, stdout, stderr := invoke(t, args...); code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("%q: exit code %d: %s%s", args, code, stdout, stderr)
		}
	}
}

func TestATableOfIncidentsNeverWritesIntoAFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{nil, {"--json"}} {
		args := append([]string{"incident", "table", "cnp-starved", "--out", dir}, flags...)
		if code, stdout, stderr := invoke(t, args...); code != 2 || stdout != "" || !strings.Contains(stderr, "not empty") {
			t.Errorf("%q: exit code %d: %s%s", args, code, stdout, stderr)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("it holds %v now", left)
	}
}

func TestWrongUsageOfIncidentsIsSaid(t *testing.T) {
	for want, args := range map[string][]string{
		`there is no incident "victim"`:      {"incident", "run", "victim"},
		`did you mean "uplink-flap"`:         {"incident", "show", "uplink-flop"},
		"--backend":                          {"incident", "run", "victim-flow", "--backend", "simm"},
		"name those that are meant":          {"incident", "table", "--backend", "auto"},
		"exclude each other":                 {"incident", "table", "--json", "--markdown"},
		"--cure goes with --file":            {"incident", "show", "victim-flow", "--cure"},
		"is neither auto nor a power of two": {"incident", "run", "victim-flow", "--dilation", "many"},
	} {
		if code, _, stderr := invoke(t, args...); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d: %s", args, code, stderr)
		}
	}
}
