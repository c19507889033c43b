package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/rocebed/rocebed/testbed/guest"
	"github.com/rocebed/rocebed/testbed/kernel"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/workloads"
)

// Where things lie in the guest.
const (
	guestFolder   = "/x"
	guestScenario = guestFolder + "/scenario.yaml"
	guestRecord   = guestFolder + "/record"
)

// windDown is how long a run in the guest may take to heal and take its fabric down once it
// was told to stop, in wall time.
const windDown = 3 * time.Minute

// runInGuest runs the scenario by this same binary inside a microVM and takes the record out.
// The scenario has been checked here, so that nothing is booted for a misspelt key.
func runInGuest(ctx context.Context, s *Scenario, opt RunOptions, choice Choice) (*Outcome, error) {
	began := time.Now()
	place, err := reserve(opt.Out)
	if err != nil {
		return nil, err
	}
	defer place.release()
	opt.Progress.Step("booting the guest")
	g, err := guest.Boot(ctx, guest.Config{
		MemoryMB: GuestMemory(s),
		Files:    []guest.File{{Content: s.Source, To: guestScenario}},
		Progress: opt.Progress.Status,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIncapable, err)
	}
	defer g.Close()
	for _, f := range g.Report.Failed {
		opt.Progress.Note(fmt.Sprintf("a boot under %s failed after %.1f s and was tried again: %s", f.Accel, f.Lasted.Seconds(), f.Reason))
	}
	opt.Progress.Note(fmt.Sprintf("guest: kernel %s under %s, %d MiB, %d processors, booted in %.1f s",
		g.Report.Kernel, g.Report.Accel, g.Report.MemoryMB, g.Report.CPUs, g.Report.Total.Seconds()))

	var stdout bytes.Buffer
	waits, told := g.Waits()
	code, err := inGuest(ctx, g, guestArgv(s, opt), &stdout, &relay{to: opt.Progress})
	g.Report.Clock = g.Clock()
	var sum record.Summary
	switch {
	case err != nil:
		err = fmt.Errorf("run in the guest: %w", err)
	case json.Unmarshal(stdout.Bytes(), &sum) != nil:
		err = &GuestError{Code: code}
	}
	var hungry string
	if now, ok := g.Waits(); ok && told {
		waits = now.Since(waits)
		g.Report.Waits, hungry = &waits, starved(waits.Share())
	}
	boot, bad := json.Marshal(g.Report)
	if bad != nil {
		return nil, bad
	}
	r := &guestRun{s: s, opt: opt, choice: choice, place: place, began: began, ended: err, sum: sum, warning: hungry, complete: func(m *record.Manifest) {
		m.Guest, m.GuestBoot = true, boot
		m.Path, m.Scenario, m.BackendWhy = opt.Out, s.Path, choice.Why
		m.Phases = append([]record.PhaseTime{{Name: "booting the guest", Wall: g.Report.Total}}, m.Phases...)
		m.Started, m.Wall = began, time.Since(began)
	}}
	opt.Progress.Step("taking the record out of the guest")
	fetch, cancel := context.WithTimeout(context.WithoutCancel(ctx), windDown)
	defer cancel()
	return r.conclude(func(dir string) error { return g.Fetch(fetch, guestRecord, dir) }, g.Report.Clock.Problem, g.Console(consoleKept))
}

// GuestError says that the run in the guest ended without a result. What it said is among the
// progress.
type GuestError struct{ Code int }

func (e *GuestError) Error() string {
	return fmt.Sprintf("the run in the guest ended with exit code %d and no result", e.Code)
}

// guestArgv is the command that the guest runs.
func guestArgv(s *Scenario, opt RunOptions) []string {
	argv := []string{guest.BinaryPath, "run", "--backend", string(Kernel), "--in-guest", "--json", "--out", guestRecord,
		"--seed", strconv.FormatUint(s.Seed, 10), "--dilation", s.Dilation.String()}
	if opt.AllowSlow {
		argv = append(argv, "--allow-slow")
	}
	for _, c := range opt.Captures {
		argv = append(argv, "--capture", c.Node+":"+c.Port)
	}
	return append(argv, guestScenario)
}

// inGuest runs a command to its end. When ctx ends the command is told to stop, and is given
// time to wind down.
func inGuest(ctx context.Context, g *guest.Guest, argv []string, stdout, stderr io.Writer) (int, error) {
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	p, err := g.Start(whole, guest.Cmd{Argv: argv, Dir: "/", Stdout: stdout, Stderr: stderr})
	if err != nil {
		return -1, err
	}
	done := make(chan struct{})
	go func() {
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		_ = p.Signal("TERM") // if that fails the guest is gone, which Wait says
		select {
		case <-done:
		case <-time.After(windDown):
			cancel()
		}
	}()
	st, err := p.Wait(whole)
	close(done)
	return st.Code, err
}

// GuestMemory is what a scenario's guest needs, in MiB: its topology, and what workloads register.
func GuestMemory(s *Scenario) int {
	return kernel.GuestMemoryMB(s.Topology, s.NICs) + int(workloads.Footprint(s.Workloads, s.Topology)>>20)
}

// relay passes the lines of a run in the guest on as progress.
type relay struct {
	to   Progress
	rest []byte
}

// Write takes whatever came; lines are passed on when they are whole.
func (r *relay) Write(b []byte) (int, error) {
	r.rest = append(r.rest, b...)
	for {
		i := bytes.IndexByte(r.rest, '\n')
		if i < 0 {
			return len(b), nil
		}
		line := strings.TrimRight(string(r.rest[:i]), "\r")
		r.rest = r.rest[i+1:]
		switch {
		case strings.HasPrefix(line, stepMark):
			r.to.Step("guest: " + strings.TrimPrefix(line, stepMark))
		case strings.HasPrefix(line, statusMark):
			r.to.Status(strings.TrimPrefix(line, statusMark))
		default:
			r.to.Note(strings.TrimPrefix(line, noteMark))
		}
	}
}
