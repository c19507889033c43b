package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/testbed/record"
)

const quickstart = "../../scenarios/quickstart.yaml"

// invoke runs the command line and gives its exit code and what it printed.
func invoke(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	read := func(into **os.File) func() string {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		old, text := *into, make(chan string)
		*into = w
		go func() {
			var b bytes.Buffer
			_, _ = io.Copy(&b, r)
			r.Close()
			text <- b.String()
		}()
		return func() string { w.Close(); *into = old; return <-text }
	}
	out, errs := read(&os.Stdout), read(&os.Stderr)
	code = run(args)
	return code, out(), errs()
}

// edited is the quickstart scenario with something replaced.
func edited(t *testing.T, old, new string) string {
	t.Helper()
	b, err := os.ReadFile(quickstart)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), old) {
		t.Fatalf("the quickstart has no %q", old)
	}
	path := filepath.Join(t.TempDir(), "edited.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), old, new, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAMisspeltKeyIsExitCode2AndItsPlace(t *testing.T) {
	path := edited(t, "workloads:", "worklaods:")
	for _, command := range []string{"run", "validate"} {
		code, stdout, stderr := invoke(t, command, path)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "edited.yaml:") || !strings.Contains(stderr, `did you mean "workloads"?`) {
			t.Errorf("%s: exit code %d, stdout %q, stderr:\n%s", command, code, stdout, stderr)
		}
	}
}

func TestValidateSaysItAsJSON(t *testing.T) {
	code, stdout, _ := invoke(t, "validate", "--json", edited(t, "kind: loss", "kind: los"), quickstart)
	var got struct {
		Valid    bool
		Problems []placed
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if code != 2 || got.Valid || len(got.Problems) != 1 || got.Problems[0].Line == 0 || got.Problems[0].Path != "faults[0].kind" {
		t.Errorf("exit code %d, %+v", code, got)
	}
	if code, stdout, _ := invoke(t, "validate", "--json", quickstart); code != 0 || strings.TrimSpace(stdout) != `{"problems":[],"valid":true}` {
		t.Errorf("exit code %d, %s", code, stdout)
	}
}

func TestValidateWarnsOfWhatIsHardlyMeant(t *testing.T) {
	path := edited(t, "workloads:", "switches: {pfc: {headroom: 1KB}}\nworkloads:")
	code, stdout, stderr := invoke(t, "validate", path)
	if code != 0 || !strings.Contains(stdout, "quickstart with") || !strings.Contains(stderr, "edited.yaml:") || !strings.Contains(stderr, ": warning: ") || !strings.Contains(stderr, "1KB of headroom") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	code, stdout, stderr = invoke(t, "validate", "--json", path, quickstart)
	var got struct {
		Valid              bool
		Problems, Warnings []placed
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 || stderr != "" || !got.Valid || len(got.Problems) != 0 ||
		len(got.Warnings) != 1 || got.Warnings[0].Line == 0 || got.Warnings[0].Path != "switches.pfc.headroom" {
		t.Errorf("exit code %d, %v, %+v, stderr %q", code, err, got, stderr)
	}
}

func TestValidateSaysWhatTheNamedBackendCannotDo(t *testing.T) {
	pfc, file := edited(t, "workloads:", "switches: {pfc: {priorities: [3]}}\nworkloads:"), "edited.yaml:"
	named := edited(t, "dilation: 1024", "backend: sim\nnics: {process: true}")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{pfc}, 0, ""},
		{[]string{"--backend", "sim", pfc}, 0, ""},
		{[]string{named}, 2, "one process"},
		{[]string{"--backend", "sim", quickstart, named}, 2, "one process"},
		{[]string{"--backend", "simm", quickstart}, 2, "no backend"},
	} {
		code, _, stderr := invoke(t, append([]string{"validate"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) || strings.Contains(c.want, "process") && !strings.Contains(stderr, file) {
			t.Errorf("%q: exit code %d, stderr %q", c.args, code, stderr)
		}
	}
}

func TestRunsWithinASecondHaveRecordsOfTheirOwn(t *testing.T) {
	scenario, err := filepath.Abs(quickstart)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	records := map[string]bool{}
	for range 3 { // a tenth of a second each
		code, stdout, stderr := invoke(t, "run", "--backend", "sim", "--json", scenario)
		var sum record.Summary
		if err := json.Unmarshal([]byte(stdout), &sum); err != nil || code != 0 || records[sum.Record] {
			t.Fatalf("exit code %d, record %s (before: %v), %v, stderr:\n%s", code, sum.Record, records, err, stderr)
		}
		records[sum.Record] = true
	}
}

func TestWhatNoMachineHasIsExitCode3(t *testing.T) {
	code, _, stderr := invoke(t, "run", "--backend", "sim", "--guest", quickstart)
	if code != 3 || !strings.Contains(stderr, "leave --guest out") || !strings.Contains(stderr, "--backend kernel") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

func TestQuickstartRunsInVirtualTimeWithoutAnything(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	code, stdout, stderr := invoke(t, "run", "--backend", "sim", "--json", "--out", dir, quickstart)
	var sum record.Summary
	if err := json.Unmarshal([]byte(stdout), &sum); err != nil {
		t.Fatal(err, stdout, stderr)
	}
	if code != 0 || sum.Verdict != record.Pass || sum.Backend != "sim" || !strings.Contains(stderr, "virtual time") {
		t.Errorf("exit code %d, %+v, stderr %q", code, sum, stderr)
	}
}

func TestARunNeverWritesOverAFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := invoke(t, "run", "--guest", "--out", dir, quickstart)
	if code != 2 || !strings.Contains(stderr, "not empty") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

func TestWrongUsageIsExitCode2(t *testing.T) {
	for _, args := range [][]string{{"run"}, {"run", "--sed", "1", quickstart}, {"run", "--backend", "kernl", quickstart}, {"run", "--dilation", "3", quickstart},
		{"run", "--capture", "leaf1", quickstart}, {"run", "--capture", "leaf9:eth0", quickstart}, {"run", "no-such-file.yaml"}, {"rnu"}} {
		if code, _, stderr := invoke(t, args...); code != 2 || stderr == "" {
			t.Errorf("%q: exit code %d, stderr %q", args, code, stderr)
		}
	}
}
