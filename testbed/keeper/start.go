//go:build linux

package keeper

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// starterEnv tells a keeper that the process which started it listens on descriptor 3.
const starterEnv = "ROCEBED_KEEPER_STARTER"

// told is a line from a keeper to the process that started it.
type told struct {
	Step  string `json:"step,omitempty"`
	Ready bool   `json:"ready,omitempty"`
	Error string `json:"error,omitempty"`
}

// StartError is why a keeper did not come up, with the exit code that it ended with.
type StartError struct {
	Why  string
	Code int
}

func (e *StartError) Error() string { return e.Why }

// Start runs this program again with args as a keeper (it must call [Serve]) in a session of its
// own with input as its standard input, passes its steps on, and returns when the testbed is up; the
// keeper stays. When it does not come up the error is a [*StartError]. When ctx ends the keeper
// takes down what it has and is waited for; it does so by itself when this process dies first.
func Start(ctx context.Context, args []string, input []byte, step func(string)) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), starterEnv+"=3")
	cmd.Stdin = bytes.NewReader(input)
	cmd.Stdout, cmd.Stderr = w, w // what it prints unasked (a panic) is part of the story
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return fmt.Errorf("start keeper: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()

	ready, why, err := hear(r, step)
	if ready && err == nil && ctx.Err() == nil {
		return cmd.Process.Release()
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	select {
	case <-waited:
	case <-time.After(downWithin + 10*time.Second):
		_ = cmd.Process.Kill()
		<-waited
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("start keeper: %w", err)
	}
	if why == "" {
		why = fmt.Sprintf("the keeper ended without a word (%v); 'rocebed clean' removes what it left", cmd.ProcessState)
	}
	return &StartError{Why: why, Code: max(1, cmd.ProcessState.ExitCode())} // -1: a signal ended it
}

// hear reads what a keeper tells until it is ready or gone.
func hear(r io.Reader, step func(string)) (ready bool, why string, err error) {
	var unasked []string
	in := bufio.NewReader(r)
	for {
		raw, err := in.ReadBytes('\n')
		var t told
		switch {
		case len(raw) > 0 && json.Unmarshal(raw, &t) != nil:
			unasked = append(unasked, strings.TrimRight(string(raw), "\n"))
		case t.Ready:
			return true, "", nil
		case t.Error != "":
			why = t.Error
		case t.Step != "":
			step(t.Step)
		}
		if errors.Is(err, io.EOF) {
			if why == "" {
				why = strings.Join(unasked, "\n")
			}
			return false, why, nil
		}
		if err != nil {
			return false, why, err
		}
	}
}

// starter is the process that started this keeper, as long as it listens.
type starter struct{ w *os.File }

func openStarter() *starter {
	if os.Getenv(starterEnv) == "" {
		return &starter{}
	}
	syscall.CloseOnExec(3)
	return &starter{os.NewFile(3, "starter")}
}

func (s *starter) tell(t told) error {
	if s.w == nil {
		return nil
	}
	return json.NewEncoder(s.w).Encode(t)
}

func (s *starter) step(text string) { _ = s.tell(told{Step: text}) }
func (s *starter) fail(err error)   { _ = s.tell(told{Error: err.Error()}) }

// ready fails when nobody listens any more.
func (s *starter) ready() error {
	err := s.tell(told{Ready: true})
	s.close()
	return err
}

// watch calls gone when the process that started this keeper stops listening: a testbed that comes
// up for nobody would stay, unknown, until somebody wants its name. stop ends the watch.
func (s *starter) watch(gone func()) (stop func(), err error) {
	if s.w == nil {
		return func() {}, nil
	}
	wake, stopping, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fds := []unix.PollFd{{Fd: int32(s.w.Fd())}, {Fd: int32(wake.Fd())}} // a hang-up is always told
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			_, err := unix.Poll(fds, -1)
			switch {
			case err == unix.EINTR:
				continue
			case err == nil && fds[1].Revents == 0:
				gone()
			}
			return
		}
	}()
	return func() { stopping.Close(); <-ended; wake.Close() }, nil
}

func (s *starter) close() {
	if s.w != nil {
		s.w.Close()
		s.w = nil
	}
}
