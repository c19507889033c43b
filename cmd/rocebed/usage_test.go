package main

import (
	"strings"
	"testing"
)

func TestWrongUsageSaysTheCommandHowItIsUsedAndNoGoFunction(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"run"}, []string{"run: accepts 1 arg", "usage: rocebed run [flags] SCENARIO"}},
		{[]string{"run", "--seed", "-1", quickstart}, []string{`"-1" for "--seed"`, "invalid syntax", "rocebed run --help"}},
		{[]string{"run", "--seed", "99999999999999999999", quickstart}, []string{"value out of range"}},
		{[]string{"run", "--nope", quickstart}, []string{"unknown flag: --nope", "usage: rocebed run"}},
		{[]string{"image", "bild"}, []string{`unknown command "bild"`, "usage: rocebed image"}},
		{[]string{"image", "show", "x"}, []string{"usage: rocebed image show"}},
		{[]string{"--nope"}, []string{"unknown flag: --nope"}},
		{[]string{"shell", "--guest", "--mem", "1"}, []string{"--mem: 1 MiB", "at least 256"}},
		{[]string{"shell", "--guest", "--cpus", "-1"}, []string{"--cpus: -1"}},
		{[]string{"shell", "--guest", "--accel", "vmx"}, []string{`--accel: "vmx"`}},
	} {
		code, stdout, stderr := invoke(t, c.args...)
		if code != 2 || stdout != "" || strings.Contains(stderr, "strconv") {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%q: stderr %q, want %q in it", c.args, stderr, want)
			}
		}
	}
}
