// Package testleak fails a test binary that leaves something behind: goroutines on every
// system; on Linux also descriptors, child processes, mounts and network namespaces.
//
// It is for test mains only and imports no other room:
//
//	func TestMain(m *testing.M) { testleak.Main(m) }
//
// What another package's tests hold at the same moment is told apart by its owner: a
// namespace that the state folder of a living testbed names is not counted.
package testleak

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long what ends by itself (a goroutine that returns, a namespace that the
// kernel takes back) may need after the last test.
const patience = 5 * time.Second

// Main runs the tests and exits. The exit code is that of the tests, or 1 when they passed
// but left something behind.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for test mains that have to do something afterwards: it returns the exit code.
// What the caller holds before Run is not counted.
func Run(m *testing.M) int {
	s := take()
	code := m.Run()
	leaks := s.await(patience)
	for _, l := range leaks {
		fmt.Fprintf(os.Stderr, "testleak: left behind: %s\n", l)
	}
	if code == 0 && len(leaks) > 0 {
		return 1
	}
	return code
}

// snapshot is what there was before the tests.
type snapshot struct {
	goroutines goleak.Option
	system     system
}

func take() snapshot {
	return snapshot{goroutines: goleak.IgnoreCurrent(), system: takeSystem()}
}

// await looks again until nothing is left behind or the patience ends, and returns what was
// seen last.
func (s snapshot) await(patience time.Duration) []string {
	deadline := time.Now().Add(patience)
	for {
		leaks := s.leaks()
		if len(leaks) == 0 || time.Now().After(deadline) {
			return leaks
		}
		<-time.After(20 * time.Millisecond)
	}
}

// leaks is what there is now and wasn't in s.
func (s snapshot) leaks() []string {
	leaks := s.system.leaks(takeSystem())
	// Ginkgo's interrupt handler lives as long as the process.
	err := goleak.Find(s.goroutines,
		goleak.IgnoreAnyFunction("github.com/onsi/ginkgo/v2/internal/interrupt_handler.(*InterruptHandler).registerForInterrupts.func2"))
	if err != nil {
		leaks = append(leaks, err.Error())
	}
	return leaks
}
