package testbed

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/record"
)

// behindItsBack does something in a node's namespace, as nobody should.
func behindItsBack(t *testing.T, bed, node, command string, args ...string) {
	t.Helper()
	cmd := exec.Command(command, append([]string{"-n", linux.NamespaceName(bed, node)}, args...)...)
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %v: %s", cmd, err, b)
	}
}

// h1 ── leaf1 ──/── leaf2 ── h2: the link, or the tc tree of leaf1's port, is taken away while a fault slows it.
func TestAHealThatFailsOnRxeIsReportedAndFailsTheRun(t *testing.T) {
	const bed = "healfails"
	source := strings.Replace(strings.Replace(onRxe, "messages: 60", "duration: 1h", 1),
		"{name: lossy, kind: loss, at: [leaf1-leaf2], probability: 2%}", "{name: lossy, kind: rate, rate: 1Gbps, at: [leaf1-leaf2], direction: egress, schedule: {for: 4ms}}", 1)
	for what, gone := range map[string][]string{
		"the link":    {"ip", "link", "del", "eth1"},
		"the tc tree": {"tc", "qdisc", "del", "dev", "eth1", "root"},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		limit := time.AfterFunc(time.Minute, func() { cancel(context.DeadlineExceeded) })
		said := notes{
			{"lossy: verified", func() { behindItsBack(t, bed, "leaf1", gone[0], gone[1:]...) }},
			{"lossy: failed (IT COULD NOT BE HEALED", func() { cancel(ErrInterrupted) }},
		}
		out, r := runOnRxe(t, ctx, source, RunOptions{Testbed: bed, Progress: &said})
		limit.Stop()
		cancel(nil)
		f := out.Summary.Faults[0]
		if problems := strings.Join(out.Summary.Problems, "\n"); out.Passed() || f.Healed || !strings.Contains(problems, "lossy: IT COULD NOT BE HEALED: ") {
			t.Errorf("%s: verdict %v, fault %+v, problems\n%s", what, out.Summary.Verdict, f, problems)
		}
		if m := r.Manifest(); m.Verdict != record.Fail || !strings.Contains(strings.Join(m.Problems, "\n"), "COULD NOT BE HEALED") {
			t.Errorf("%s: manifest %+v", what, m)
		}
		if err := r.Verify(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		for _, name := range []string{"report.html", "junit.xml", record.SummaryFile} {
			page, err := os.ReadFile(filepath.Join(r.Dir(), name))
			if err != nil || !strings.Contains(string(page), "COULD NOT BE HEALED") {
				t.Errorf("%s: %s doesn't say it (%v)", what, name, err)
			}
		}
	}
}

// notes does something when a text is first told.
type notes []struct {
	text string
	do   func()
}

func (n *notes) Step(string)   {}
func (n *notes) Status(string) {}
func (n *notes) Note(text string) {
	for i := range *n {
		if one := &(*n)[i]; one.do != nil && strings.Contains(text, one.text) {
			do := one.do
			one.do = nil
			do()
		}
	}
}
