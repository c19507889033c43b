//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/rocebed/rocebed/internal/testneed"
)

func TestATestbedThatDoesNotExistIsAUsageError(t *testing.T) {
	for _, args := range [][]string{{"status", "no-such-testbed"}, {"down", "no-such-testbed"}, {"exec", "--name", "no-such-testbed", "h1", "--", "true"}} {
		code, stdout, stderr := invoke(t, args...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "no-such-testbed") || !strings.Contains(stderr, "no such testbed") {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
	testneed.Root(t)
	if code, stdout, stderr := invoke(t, "clean", "no-such-testbed"); code != 0 || stdout != "nothing to clean\n" {
		t.Errorf("clean: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if code, stdout, _ := invoke(t, "clean", "--json", "no-such-testbed"); code != 0 || stdout != "[]\n" {
		t.Errorf("clean --json: exit code %d, stdout %q", code, stdout)
	}
}

func TestUpRefusesAWrongScenarioAndAWrongNameBeforeItMakesAnything(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"up", edited(t, "workloads:", "worklaods:")}, `did you mean "workloads"?`},
		{[]string{"up", "--name", "../x", quickstart}, `testbed name "../x"`},
		{[]string{"up", "--dilation", "3", quickstart}, "--dilation"},
		{[]string{"up", "--backend", "kernl", quickstart}, "--backend"},
		{[]string{"up"}, "accepts 1 arg"},
		{[]string{"exec", "h1"}, "requires at least 2 arg"},
	} {
		if code, stdout, stderr := invoke(t, c.args...); code != 2 || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
	}
}

func TestATestbedIsNamedInOneWayByAllCommands(t *testing.T) {
	for _, args := range [][]string{
		{"status", "none-such"}, {"status", "--name", "none-such"}, {"status", "--name", "none-such", "none-such"},
		{"down", "none-such"}, {"down", "--name", "none-such"}, {"exec", "--name", "none-such", "h1", "true"},
	} {
		if code, stdout, stderr := invoke(t, args...); code != 2 || stdout != "" || !strings.Contains(stderr, "testbed none-such: there is no such testbed") {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
	for _, args := range [][]string{{"status", "--name", "a", "b"}, {"down", "--name", "a", "b"}} {
		if code, _, stderr := invoke(t, args...); code != 2 || !strings.Contains(stderr, `"a" or "b"?`) {
			t.Errorf("%q: exit code %d, stderr %q", args, code, stderr)
		}
	}
}

func TestANameThatIsEmptyIsNotTheOnlyTestbed(t *testing.T) {
	for _, args := range [][]string{
		{"status", ""}, {"status", "--name="}, {"down", ""}, {"down", "--name="}, {"exec", "--name=", "h1", "true"},
		{"clean", ""}, {"clean", "--all", "../.."},
	} {
		if code, stdout, stderr := invoke(t, args...); code != 2 || stdout != "" || !strings.Contains(stderr, "use 1 to 63 letters") {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}
