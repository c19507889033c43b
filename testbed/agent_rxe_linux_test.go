//go:build linux

package testbed

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/record"
)

// agentOfThis is the process of this one's fabric's agent; 0: there is none.
func agentOfThis(t *testing.T) int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		stat, err := os.ReadFile(p)
		if err != nil { // it has ended meanwhile
			continue
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		cmd, err := os.ReadFile(filepath.Join(filepath.Dir(p), "cmdline"))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) && strings.HasPrefix(string(cmd), "rocebed-agent") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p)))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	return 0
}

// started hears that a workload has started.
type started struct{ traffic chan struct{} }

func (started) Step(string)   {}
func (started) Status(string) {}
func (s started) Note(line string) {
	if strings.Contains(line, "workload w: started") {
		select {
		case s.traffic <- struct{}{}:
		default:
		}
	}
}

// A fabric whose agent is killed is noticed to be broken within a second, its ports run on as if nothing was paused, and the run fails.
func TestARunWhoseAgentIsKilledFailsAtOnce(t *testing.T) {
	testneed.Rxe(t)
	s, err := Parse("killed.yaml", []byte(`apiVersion: rocebed/v1
name: killed
dilation: 1024
topology: {star: {hosts: 3}, rate: 10Gbps}
nics: {dcqcn: paper}
switches: {pfc: {xoff: 100KB, xon: 20KB}, ecn: {kmin: 40KB, kmax: 200KB, pmax: 10%}}
workloads: [{name: w, kind: write, from: [h1, h2], to: [h3], size: 64KiB, duration: 100ms}]
`))
	if err != nil {
		t.Fatal(err)
	}
	killed := make(chan time.Time, 1)
	watching, stop := context.WithCancel(context.Background())
	defer stop()
	notes := started{make(chan struct{}, 1)}
	go func() {
		select {
		case <-watching.Done():
		case <-notes.traffic:
			if pid := agentOfThis(t); pid > 0 {
				killed <- time.Now()
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}()
	out := filepath.Join(t.TempDir(), "record")
	o, err := Run(context.Background(), s, RunOptions{Backend: Kernel, InGuest: true, AllowSlow: true, Out: out, Progress: notes})
	if err != nil {
		t.Fatal(err)
	}
	var at time.Time
	select {
	case at = <-killed:
	default:
		t.Fatal("no agent was found")
	}
	if o.Passed() || !strings.Contains(strings.Join(o.Summary.Problems, "\n"), "has died") {
		t.Errorf("the verdict is %v: %v", o.Summary.Verdict, o.Summary.Problems)
	}
	rd, err := record.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	events, err := rd.Events()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(events, func(e record.Event) bool { return e.Source == "fabric" && e.What == "broken" }) {
		t.Fatalf("nothing in the record says that the fabric is broken: %v", events)
	}
	t.Logf("the run was over %v after the agent was killed", time.Since(at).Round(time.Millisecond))
	if left := agentOfThis(t); left != 0 {
		t.Errorf("an agent is left: process %d", left)
	}
}
