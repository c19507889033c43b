//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/keeper"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo/strict"
)

func TestWhatAMachineCannotIsNotTakenForWrongUsage(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("guest archive: too many open files"), exitMachine},
		{fmt.Errorf("%w: too old", testbed.ErrIncapable), exitMachine},
		{&linux.HeldError{Testbed: "a", PID: 1}, exitUsage},
		{fmt.Errorf("dilation: %w", strict.Problems{&strict.Problem{File: "f", Line: 1, Col: 1, Err: errors.New("too slow")}}), exitUsage},
		{&keeper.StartError{Why: "inside", Code: exitUsage}, exitUsage},
		{&keeper.StartError{Why: "inside", Code: exitFailed}, exitFailed},
	} {
		if got := bringCode(c.err); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
	if got := codeOf(rootsAlone(fmt.Errorf("list testbeds: %w", fs.ErrPermission))); got != exitMachine {
		t.Errorf("not root: exit code %d", got)
	}
	if got := codeOf(rootsAlone(keeper.ErrNone)); got != exitUsage {
		t.Errorf("no such testbed: exit code %d", got)
	}
}
