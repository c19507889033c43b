// Command rocebed builds RoCEv2 fabrics on one Linux machine, breaks them on purpose and
// proves what the transport did. This folder is flags and output; the work is done in
// the packages that it calls.
package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/rocebed/rocebed/testbed/guest"
	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitPassed  = 0
	exitFailed  = 1 // a verdict failed
	exitUsage   = 2 // wrong usage or a wrong scenario
	exitMachine = 3 // this machine can't
)

// commands makes the commands. To add one, write its file and name it here.
var commands = []func() *cobra.Command{
	newRunCommand,
	newIncidentCommand,
	newCompareCommand,
	newValidateCommand,
	newDoctorCommand,
	newImageCommand,
	newShellCommand,
	newGraphCommand,
	newVersionCommand,
	newGuestInitCommand,
}

func main() {
	guest.InitIfAsked()
	rootless(os.Args[1:])
	slog.SetLogLoggerLevel(slog.LevelWarn) // what is well is said by the commands themselves
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	root := &cobra.Command{
		Use:           "rocebed",
		Short:         "A RoCEv2 GPU cluster on one Linux machine, made to be broken on purpose",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	for _, c := range append(commands, keeperCommands...) {
		root.AddCommand(c())
	}
	withUsage(root)
	root.SetArgs(args)
	err := root.Execute()
	var code exitCode
	switch {
	case err == nil:
		return exitPassed
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintln(os.Stderr, "rocebed:", err)
	return codeOf(err)
}

// exitCode is an error that only carries the exit code: all has been said.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// coded is an error with the exit code that it asks for.
type coded struct {
	error
	code int
}

func (c coded) Unwrap() error { return c.error }

// withCode gives an error an exit code; a nil error stays nil.
func withCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return coded{err, code}
}

// codeOf is the exit code of an error: its own, else what its kind says; errors of the
// command line itself have neither and are usage errors.
func codeOf(err error) int {
	var c coded
	switch {
	case errors.As(err, &c):
		return c.code
	case errors.Is(err, guest.ErrUnavailable):
		return exitMachine
	}
	return exitUsage
}
