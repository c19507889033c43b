// Command leftover runs a command and compares the machine before and after it: network
// namespaces, links, mounts, RDMA devices, pinned programs, testbeds and processes. It is how
// `make test` shows that nothing is left behind.
//
//	go run ./internal/leftover -- COMMAND [ARG…]
//
// The exit code is the command's, or 1 when it passed but left something. On systems other than
// Linux the command is run and nothing compared.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// mark is set in the environment of the command, and so of all that it starts.
const mark = "ROCEBED_LEFTOVER"

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: leftover -- COMMAND [ARG…]")
		os.Exit(2)
	}
	value := fmt.Sprintf("%s=%d", mark, os.Getpid())
	left := watch(value)
	code := run(args, value)
	if leaks := left(); len(leaks) > 0 {
		for _, l := range leaks {
			fmt.Fprintf(os.Stderr, "leftover: %s left behind: %s\n", args[0], l)
		}
		if code == 0 {
			code = 1
		}
	}
	os.Exit(code)
}

// run starts the command with the mark in its environment, passes interrupts on to it, and
// returns its exit code.
func run(args []string, value string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), value)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer close(signals)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "leftover:", err)
		return 2
	}
	go func() {
		for s := range signals {
			if s != os.Interrupt { // the terminal interrupts the whole group already
				_ = cmd.Process.Signal(s)
			}
		}
	}()
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode()
	default:
		fmt.Fprintln(os.Stderr, "leftover:", err)
		return 1
	}
}
