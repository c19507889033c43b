package testbed

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/rocebed/rocebed/internal/testleak"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "test-run" {
		os.Exit(testRun(Backend(os.Args[2]), os.Args[3], os.Args[4], os.Args[5]))
	}
	testleak.Main(m)
}

// testRun is a process that runs a scenario, to be killed.
func testRun(on Backend, testbed, scenario, out string) int {
	s, err := Load(scenario)
	if err != nil {
		fmt.Println(err)
		return 2
	}
	progress := NewLines(os.Stdout, 0)
	ctx, stop := Interruptible(context.Background(), progress.Note)
	defer stop()
	o, err := Run(ctx, s, RunOptions{Backend: on, Testbed: testbed, Out: out, AllowSlow: true, Progress: progress})
	switch {
	case err != nil:
		fmt.Println("no verdict:", err)
		return 3
	case !o.Passed():
		return 1
	}
	return 0
}
