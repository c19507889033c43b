package main

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/linux"
)

// rootless has the commands of a user who isn't root run in that user's own world, where the soft backend works: those
// that make testbeds make it, those that look for testbeds enter it where it is. It returns where there is no need, and where it can't be
// had: what the command says then says why.
func rootless(args []string) {
	testbed.ProcessIfAsked()
	linux.InWorld()
	if os.Geteuid() == 0 || len(args) == 0 || slices.Contains(args, "--guest") || slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		return
	}
	for i, a := range args {
		backend, given := strings.CutPrefix(a, "--backend=")
		if a == "--backend" && i+1 < len(args) {
			backend, given = args[i+1], true
		}
		if b, err := testbed.ParseBackend(backend); given && (err != nil || b == testbed.Sim || b == testbed.Kernel) {
			return
		}
	}
	command := args[0]
	if command == "incident" { // in virtual time unless a backend was named
		if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--backend") }) || len(args) < 2 {
			return
		}
		command = "run"
	}
	switch {
	case makesTestbeds(command):
		_ = linux.EnterWorld(true)
	case findsTestbeds(command):
		if err := linux.EnterWorld(false); err != nil && !errors.Is(err, linux.ErrNoWorld) {
			fail(err)
		}
	}
}

func makesTestbeds(command string) bool { return slices.Contains([]string{"run", "up"}, command) }

func findsTestbeds(command string) bool {
	return slices.Contains([]string{"status", "exec", "fault", "down", "clean"}, command)
}

func fail(err error) {
	os.Stderr.WriteString("rocebed: " + err.Error() + "\n")
	os.Exit(exitMachine)
}
