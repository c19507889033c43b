// Package testneed says what a test needs of the machine, and skips it where that is missing,
// unless the run was told that nothing may be missing: then the test fails.
//
// `make test` runs what needs rxe inside the guest with ROCEBED_TESTS_MUST_RUN=1, so that a
// test which should run there can't quietly skip. For tests only; imports no other room.
package testneed

import (
	"os"
	"runtime"
	"testing"
)

// MustRun is the environment variable that turns a skip into a failure when it is set.
const MustRun = "ROCEBED_TESTS_MUST_RUN"

// Root needs Linux and the right to make network namespaces.
func Root(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		miss(t, "Linux", "run it on Linux")
	} else if os.Geteuid() != 0 {
		miss(t, "root", "run the tests as root")
	}
}

// Rxe needs root and a kernel whose rdma_rxe works inside network namespaces (Linux 7.1 and
// later, with the module there).
func Rxe(t testing.TB) {
	t.Helper()
	Root(t)
	if why := rxe(); why != "" {
		miss(t, "rdma_rxe in network namespaces ("+why+")", "`make test` runs it inside the guest")
	}
}

func miss(t testing.TB, what, how string) {
	t.Helper()
	if os.Getenv(MustRun) != "" {
		t.Fatalf("needs %s, and %s says that nothing may be missing here", what, MustRun)
		return
	}
	t.Skipf("needs %s: %s", what, how)
}
