package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/testbed/compare"
)

func TestRunsAreComparedByTheirRecords(t *testing.T) {
	a, b, failed := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b"), filepath.Join(t.TempDir(), "failed")
	for dir, args := range map[string][]string{
		a:      {"--seed", "1", quickstart},
		b:      {"--seed", "2", quickstart},
		failed: {edited(t, `workloads["ring"].passed`, `!workloads["ring"].passed`)},
	} {
		want := 0
		if dir == failed {
			want = 1
		}
		if code, _, stderr := invoke(t, append([]string{"run", "--backend", "sim", "--json", "--out", dir}, args...)...); code != want {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
	}
	code, stdout, stderr := invoke(t, "compare", a, b)
	if code != 0 || !strings.Contains(stdout, "different seeds") || !strings.Contains(stdout, "ring (all-reduce)") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	code, stdout, _ = invoke(t, "compare", "--json", a, b, failed)
	var c compare.Comparison
	if err := json.Unmarshal([]byte(stdout), &c); err != nil {
		t.Fatal(err)
	}
	if code != 1 || len(c.Runs) != 3 || c.SameScenario || c.Runs[2].Verdict != "fail" || len(c.Workloads) != 2 || len(c.Counters) == 0 {
		t.Errorf("exit code %d: %+v", code, c)
	}
	if code, stdout, _ = invoke(t, "compare", "--markdown", a, b); code != 0 || !strings.HasPrefix(stdout, "| quickstart | `a` | `b` |") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	for _, args := range [][]string{{"compare"}, {"compare", t.TempDir()}, {"compare", "--json", "--markdown", a}} {
		if code, _, stderr := invoke(t, args...); code != 2 || stderr == "" {
			t.Errorf("%q: exit code %d, %q", args, code, stderr)
		}
	}
}
