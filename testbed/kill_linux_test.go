package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/record"
)

// What comes and goes all the time, with traffic, until the process is killed: one of each kind that the backend can, each in force for
// two slots, a new one in every slot.
const (
	killSlot   = 100 * time.Millisecond // of wall time
	killFactor = 256
)

const killHead = `apiVersion: rocebed/v1
name: killed
dilation: 256
topology: {spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 2}, rate: 1Gbps}
workloads:
  - {name: w, kind: write, from: [h1], to: [h4], size: 16KiB, duration: 1h}
  - {name: w2, kind: write, from: [h2], to: [h3], size: 16KiB, duration: 1h}
`

// endTraffic are kinds that no workload gets over.
var endTraffic = []faults.Kind{faults.QPKill, faults.NICReset, faults.ProcessKill, faults.WrongGID}

// ownTimes are what examples of kinds say of when.
var ownTimes = regexp.MustCompile(`, (schedule: \{[^}]*\}|may_miss: true)`)

// killScenario has every kind that the backend can, and says which.
func killScenario(t *testing.T, on Backend) (source string, kinds []string) {
	t.Helper()
	b := builders[on]
	can := func(source string) bool {
		s, err := Parse("kill.yaml", []byte(source))
		return err == nil && b.Check(s, killFactor) == nil
	}
	head := ""
	for _, ground := range grounds { // the last that it has: the richest
		if can(killHead + ground) {
			head = killHead + ground
		}
	}
	type one struct{ kind, text string }
	var all []one
	for _, k := range faults.Kinds() {
		text := ownTimes.ReplaceAllString(faults.DefOf(k).Example, "")
		if !slices.Contains(endTraffic, k) && can(head+"faults: ["+strings.Replace(text, "name: x", "name: x, schedule: {at: 1ms, for: 1ms}", 1)+"]\n") {
			all = append(all, one{string(k), text})
		}
	}
	fabric := func(wall time.Duration) time.Duration { return loop.Dilation(killFactor).Fabric(wall) }
	rng := rand.New(rand.NewPCG(4, 4))
	for range 1000 { // until those that don't compose are apart
		var faulty strings.Builder
		faulty.WriteString(head + "faults:\n")
		kinds = nil
		for i, f := range all {
			schedule := fmt.Sprintf("name: k%d, may_miss: true, schedule: {at: %v, for: %v, every: %v}", i, fabric(time.Duration(i)*killSlot), fabric(2*killSlot), fabric(time.Duration(len(all)+2)*killSlot))
			fmt.Fprintf(&faulty, "  - %s\n", strings.Replace(f.text, "name: x", schedule, 1))
			kinds = append(kinds, f.kind)
		}
		if source = faulty.String(); can(source) {
			return source, kinds
		}
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	_, err := Parse("kill.yaml", []byte(source))
	t.Fatalf("no order of the kinds has those apart that don't compose: %v\n%s", err, source)
	return "", nil
}

// doomed is a run in a process of its own.
type doomed struct {
	cmd   *exec.Cmd
	bed   string
	out   string
	ended chan struct{}

	mu   sync.Mutex
	said bytes.Buffer
}

func (d *doomed) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.said.Write(b)
}

func (d *doomed) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.said.String()
}

func startDoomed(t *testing.T, on Backend, scenario, bed, mark string) *doomed {
	t.Helper()
	d := &doomed{bed: bed, out: filepath.Join(t.TempDir(), bed), ended: make(chan struct{})}
	d.cmd = exec.Command("/proc/self/exe", "test-run", string(on), bed, scenario, d.out)
	d.cmd.Env = append(os.Environ(), mark)
	d.cmd.Stdout, d.cmd.Stderr = d, d
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = d.cmd.Wait(); close(d.ended) }()
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.ended
		_, _ = linux.Clean(context.Background(), linux.CleanOptions{Names: []string{bed}})
	})
	return d
}

// at sends a signal after a time; it fails the test when the run has ended by itself before.
func (d *doomed) at(t *testing.T, moment time.Duration, s os.Signal) {
	t.Helper()
	select {
	case <-d.ended:
		t.Fatalf("the run ended by itself within %v:\n%s", moment, d.text())
	case <-time.After(moment):
		_ = d.cmd.Process.Signal(s)
	}
}

// inForce are the faults that were in force, or on their way in or out, when the process said its last word.
func (d *doomed) inForce() (names []string) {
	at := map[string]string{}
	var order []string
	for line := range strings.Lines(d.text()) {
		_, rest, ok := strings.Cut(line, "fault k")
		if !ok {
			continue
		}
		name, what, _ := strings.Cut(rest, ": ")
		if at[name] == "" {
			order = append(order, name)
		}
		at[name] = strings.TrimSpace(what)
	}
	for _, n := range order {
		if !strings.HasPrefix(at[n], "verified clean") {
			names = append(names, "k"+n)
		}
	}
	return names
}

// expectNothing waits until nothing is left that was not there before.
func expectNothing(t *testing.T, before testleak.Machine, mark, when string) {
	t.Helper()
	var left []string
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); <-time.After(50 * time.Millisecond) {
		if left = before.Left(testleak.LookAtMachine(), mark); len(left) == 0 {
			return
		}
	}
	t.Errorf("%s: left behind:\n%s", when, strings.Join(left, "\n"))
}

// killAtRandom kills runs at random moments, cleans, and compares the machine with before.
func killAtRandom(t *testing.T, on Backend, rounds int, within time.Duration) {
	scenario, kinds := killScenarioFile(t, on)
	const seed = 20
	rng := rand.New(rand.NewPCG(seed, 1))
	mark := fmt.Sprintf("ROCEBED_KILLED=%d", os.Getpid())
	before := testleak.LookAtMachine()
	caught := map[string]int{}
	for i := range rounds {
		bed := fmt.Sprintf("killed%d-%d", os.Getpid(), i)
		d := startDoomed(t, on, scenario, bed, mark)
		moment := time.Duration(rng.Int64N(int64(within)))
		d.at(t, moment, syscall.SIGKILL)
		_, err := linux.Clean(t.Context(), linux.CleanOptions{Names: []string{bed}}) // while the process may still be on its way out
		<-d.ended
		for _, n := range d.inForce() {
			caught[n]++
		}
		when := fmt.Sprintf("seed %d, round %d: killed after %v with %v", seed, i, moment, d.inForce())
		if err != nil {
			t.Errorf("%s: clean: %v", when, err)
		}
		if _, err := os.Stat(linux.StateDir(bed)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the testbed's folder is still there (%v)", when, err)
		}
		expectNothing(t, before, mark, when)
		t.Log(when)
	}
	if len(caught) < rounds/2 {
		t.Errorf("only %d of %d kinds were in force when a run was killed: the moments are badly chosen", len(caught), len(kinds))
	}
}

func killScenarioFile(t *testing.T, on Backend) (path string, kinds []string) {
	t.Helper()
	source, kinds := killScenario(t, on)
	path = filepath.Join(t.TempDir(), "kill.yaml")
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d kinds: %s", len(kinds), strings.Join(kinds, ", "))
	return path, kinds
}

// interruptAtRandom interrupts runs at random moments: they heal, seal their records and leave nothing.
func interruptAtRandom(t *testing.T, on Backend, rounds int, within time.Duration) {
	healed := 0
	scenario, _ := killScenarioFile(t, on)
	rng := rand.New(rand.NewPCG(21, 1))
	mark := fmt.Sprintf("ROCEBED_INTERRUPTED=%d", os.Getpid())
	before := testleak.LookAtMachine()
	for i := range rounds {
		bed := fmt.Sprintf("stopped%d-%d", os.Getpid(), i)
		d := startDoomed(t, on, scenario, bed, mark)
		moment := time.Duration(rng.Int64N(int64(within)))
		d.at(t, moment, os.Interrupt)
		select {
		case <-d.ended:
		case <-time.After(3 * time.Minute):
			t.Fatalf("interrupted after %v, and still there; it said\n%s", moment, d.text())
		}
		when := fmt.Sprintf("round %d: interrupted after %v", i, moment)
		expectNothing(t, before, mark, when)
		if code := d.cmd.ProcessState.ExitCode(); code != 1 && !(code == -1 && d.text() == "") { // before it had asked for signals
			t.Errorf("%s: exit code %d:\n%s", when, code, d.text())
		}
		if !strings.Contains(d.text(), "bringing up") {
			continue // there was nothing to record
		}
		sealed(t, d, when)
		healed += strings.Count(d.text(), ": healed (")
	}
	if healed == 0 {
		t.Error("no fault was in force in any round: the moments are badly chosen")
	}
}

// sealed holds the record of an interrupted run to what it must be.
func sealed(t *testing.T, d *doomed, when string) {
	t.Helper()
	r, err := record.Open(d.out)
	if err != nil {
		t.Errorf("%s: %v", when, err)
		return
	}
	m := r.Manifest()
	if err := r.Verify(); err != nil || m.Verdict != record.Fail || m.Hash == "" {
		t.Errorf("%s: the record isn't sealed: %v, manifest %+v", when, err, m)
	}
	for _, p := range m.Problems {
		if strings.Contains(p, "HEALED") || strings.Contains(p, "LEFT") {
			t.Errorf("%s: %s", when, p)
		}
	}
	events, err := r.Events()
	if err != nil {
		t.Errorf("%s: %v", when, err)
	}
	open := map[string]bool{}
	for _, e := range events {
		if e.Source == "fault" {
			switch e.What {
			case "applied":
				open[e.Name] = true
			case "verified clean":
				delete(open, e.Name)
			}
		}
	}
	if len(open) > 0 {
		t.Errorf("%s: never verified clean: %v", when, open)
	}
	t.Log(when, "with", slices.Sorted(d.names()))
}

func (d *doomed) names() func(func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(d.text()) {
			if _, rest, ok := strings.Cut(line, "fault k"); ok && strings.Contains(rest, ": healed") {
				name, _, _ := strings.Cut(rest, ":")
				if !yield("k" + name) {
					return
				}
			}
		}
	}
}

func TestASoftRunThatIsKilledAtAnyMomentLeavesNothingOnceCleaned(t *testing.T) {
	testneed.Root(t)
	killAtRandom(t, Soft, 15, 4*time.Second)
}

func TestASoftRunThatIsInterruptedAtAnyMomentHealsAndSealsItsRecord(t *testing.T) {
	testneed.Root(t)
	interruptAtRandom(t, Soft, 5, 4*time.Second)
}
