package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/images"
)

func needGuest(t *testing.T) {
	t.Helper()
	if os.Getenv("ROCEBED_GUEST_TESTS") == "" {
		t.Skip("boots real guests: set ROCEBED_GUEST_TESTS=1 (make test does)")
	}
}

// input makes a file with that content the standard input.
func input(t *testing.T, content string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stdin")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stdin
	os.Stdin = f
	t.Cleanup(func() { os.Stdin = old; f.Close() })
}

func TestShellRunsACommandInAGuestAndCarriesItsExitCode(t *testing.T) {
	needGuest(t)
	input(t, "words from here")
	shipped := filepath.Join(t.TempDir(), "shipped")
	if err := os.WriteFile(shipped, []byte("a file from here"), 0o644); err != nil {
		t.Fatal(err)
	}
	console := filepath.Join(t.TempDir(), "console")
	code, out, errs := invoke(t, "shell", "--guest", "--mem", "700", "--ship", shipped, "--console", console, "-v", "--",
		"bash", "-c", "cat; cat /x/shipped; echo $ROCEBED_GUEST; echo oops >&2; echo to the console > /dev/console; exit 42")
	if code != 42 || out != "words from herea file from here1\n" || !strings.Contains(errs, "oops\n") || !strings.Contains(errs, "guest ready: kernel") {
		t.Errorf("exit code %d, stdout %q, stderr:\n%s", code, out, errs)
	}
	if raw, err := os.ReadFile(console); err != nil || !strings.Contains(string(raw), "to the console") {
		t.Errorf("console: %q, %v", raw, err)
	}
}

func TestShellRunsAScriptFromStandardInput(t *testing.T) {
	needGuest(t)
	input(t, "echo sum $((40+2))\nfalse\nexit 3\n")
	if code, out, errs := invoke(t, "shell", "--guest"); code != 3 || out != "sum 42\n" {
		t.Errorf("exit code %d, stdout %q, stderr:\n%s", code, out, errs)
	}
}

func TestShellRefusesWhatItCannotDo(t *testing.T) {
	t.Setenv("ROCEBED_CACHE", t.TempDir())
	t.Setenv("PATH", t.TempDir())
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"shell", "--guest", "--ship", "/no/such/file"}, exitUsage, "/no/such/file"},
		{[]string{"shell", "--guest", "--nonsense"}, exitUsage, "--nonsense"},
		{[]string{"shell", "--guest", "--", "true"}, exitMachine, "qemu-system-x86"},
		{[]string{"image", "show"}, exitMachine, "rocebed image build"},
		{[]string{"image", "show", "surplus"}, exitUsage, "surplus"},
	} {
		if code, out, errs := invoke(t, c.args...); code != c.code || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q", c.args, code, out, errs)
		}
	}
}

func TestImageShowPrintsTheManifest(t *testing.T) {
	needGuest(t)
	if code, _, errs := invoke(t, "image", "build"); code != 0 {
		t.Fatal(errs)
	}
	code, out, errs := invoke(t, "image", "show", "--json", "--verify")
	var m images.Manifest
	if err := json.Unmarshal([]byte(out), &m); code != 0 || err != nil || m.Kernel.Release == "" || len(m.Base.SHA256) != 64 {
		t.Errorf("exit code %d, %v: %.300s %s", code, err, out, errs)
	}
}
