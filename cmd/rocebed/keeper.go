//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/guest"
	"github.com/rocebed/rocebed/testbed/keeper"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo/strict"
)

// keeperCommands are the commands that work on testbeds which stay up.
var keeperCommands = []func() *cobra.Command{
	newUpCommand,
	newStatusCommand,
	newExecCommand,
	newFaultCommand,
	newDownCommand,
	newCleanCommand,
	newKeeperCommand,
}

// guestScenario is where a testbed's scenario lies in its guest.
const guestScenario = "/x/scenario.yaml"

// upOptions are what up passes on to the keeper that it starts.
type upOptions struct {
	name     string
	backend  string
	dilation string
	guest    bool
	inGuest  bool
}

func (o *upOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.name, "name", "", "name of the testbed (default the scenario's)")
	f.StringVar(&o.backend, "backend", "", "auto, kernel or soft (default: what the scenario says)")
	f.StringVar(&o.dilation, "dilation", "", "how much slower than real time: auto or a power of two (default: what the scenario says)")
	f.BoolVar(&o.guest, "guest", false, "bring it up on the kernel of a microVM, whatever this machine can")
	f.BoolVar(&o.inGuest, "in-guest", false, "this is the guest")
	_ = f.MarkHidden("in-guest")
	completeWith(c, "backend", []string{string(testbed.Auto), string(testbed.Kernel), string(testbed.Soft)})
}

// args are the same options on a command line.
func (o *upOptions) args() []string {
	args := []string{"--name", o.name}
	if o.backend != "" {
		args = append(args, "--backend", o.backend)
	}
	if o.dilation != "" {
		args = append(args, "--dilation", o.dilation)
	}
	if o.guest {
		args = append(args, "--guest")
	}
	if o.inGuest {
		args = append(args, "--in-guest")
	}
	return args
}

// load reads the scenario and settles the options that depend on it, before anything is made.
func (o *upOptions) load(path string) (s *testbed.Scenario, opt testbed.UpOptions, err error) {
	if s, err = testbed.Load(path); err != nil {
		return nil, opt, err
	}
	if o.name == "" {
		o.name = s.Name
	}
	if err := linux.CheckName(o.name); err != nil {
		return nil, opt, err
	}
	opt.Testbed = o.name
	if o.backend != "" {
		if opt.Backend, err = testbed.ParseBackend(o.backend); err != nil {
			return nil, opt, fmt.Errorf("--backend: %w", err)
		}
	}
	if o.dilation != "" {
		d, err := testbed.ParseDilation(o.dilation)
		if err != nil {
			return nil, opt, fmt.Errorf("--dilation: %w", err)
		}
		opt.Dilation = &d
	}
	return s, opt, nil
}

// newKeeperCommand is the process that up starts.
func newKeeperCommand() *cobra.Command {
	var o upOptions
	c := &cobra.Command{
		Use:    "keeper SCENARIO",
		Short:  "Be the keeper of a testbed",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(cmd *cobra.Command, args []string) error { return o.keep(cmd.Context(), args[0]) },
	}
	o.flags(c)
	return c
}

// keep is a keeper's life.
func (o *upOptions) keep(ctx context.Context, path string) error {
	s, opt, err := o.load(path)
	if err != nil {
		return err
	}
	err = keeper.Serve(ctx, o.name, func(ctx context.Context, log *slog.Logger, step func(string)) (keeper.Bed, error) {
		if o.guest {
			inside := *o
			inside.guest, inside.inGuest = false, true
			return keeper.BringGuest(ctx, keeper.InGuest{
				Testbed: o.name,
				Boot:    guest.Config{MemoryMB: testbed.GuestMemory(s), Files: []guest.File{{Content: s.Source, To: guestScenario}}},
				Up:      append(append([]string{guest.BinaryPath, "up", "--quiet"}, inside.args()...), guestScenario),
			}, log, step)
		}
		opt.Progress, opt.Log = stepper(step), log
		fab, choice, err := testbed.Up(ctx, s, opt)
		if err != nil {
			return nil, err
		}
		return keeper.OnFabric(keeper.Here{Testbed: o.name, Scenario: s.Name, Backend: string(choice.Backend), Fabric: fab,
			Faults: testbed.NewLiveFaults(s, choice, fab, log)}), nil
	})
	return withCode(bringCode(err), err)
}

// bringCode is the exit code of a keeper whose testbed didn't come up. The scenario and the usage
// have been looked at before; of them, only a name that is taken and what the backend finds in the
// scenario is left.
func bringCode(err error) int {
	inside, inGuest := errors.AsType[*keeper.StartError](err)
	_, held := errors.AsType[*linux.HeldError](err)
	_, wrong := errors.AsType[strict.Problems](err)
	switch {
	case inGuest:
		return inside.Code
	case held, wrong:
		return exitUsage
	}
	return exitMachine
}

// stepper passes steps and notes on; a status is gone before anybody could read it.
type stepper func(string)

func (f stepper) Step(text string) { f(text) }
func (f stepper) Note(text string) { f(text) }
func (stepper) Status(string)      {}

func newUpCommand() *cobra.Command {
	var o upOptions
	var asJSON, quiet bool
	c := &cobra.Command{
		Use:   "up [flags] SCENARIO",
		Short: "Bring a scenario's fabric up and leave it running",
		Long: `Bring a scenario's fabric up and leave it running: namespaces, links, RDMA devices and switches, without the
scenario's workloads and faults. A keeper process holds it until 'rocebed down'. Programs run on its nodes with
'rocebed exec' (or 'ip netns exec', where the fabric is on this machine's own kernel).

Ctrl-C while it comes up takes down what there is. Exit codes: 2 wrong usage or a wrong scenario, 3 this machine can't.`,
		Example: `  rocebed up scenarios/quickstart.yaml
  rocebed up --guest --name lab scenarios/quickstart.yaml
  rocebed exec h1 -- ibv_devinfo
  rocebed down`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.up(cmd.Context(), args[0], asJSON, quiet)
		},
	}
	o.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print what there is as one JSON object on standard output")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "don't print what there is")
	return c
}

func (o *upOptions) up(ctx context.Context, path string, asJSON, quiet bool) error {
	s, opt, err := o.load(path)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return withCode(exitMachine, errors.New("up: a testbed that stays needs root, also in a guest ('rocebed run --guest' and 'rocebed shell --guest' don't)"))
	}
	if pid, living := linux.Living(o.name); living {
		return &linux.HeldError{Testbed: o.name, PID: pid}
	}
	choice, err := testbed.Choose(ctx, s, opt.Backend, o.guest)
	if errors.Is(err, testbed.ErrIncapable) {
		return withCode(exitMachine, err)
	}
	if err != nil {
		return err
	}
	progress, done := watch(o.inGuest)
	progress.Note(choice.Why)
	o.guest = choice.Guest && !o.inGuest
	starting, stop := testbed.Interruptible(ctx, progress.Note)
	err = keeper.Start(starting, append(append([]string{"keeper"}, o.args()...), "/dev/stdin"), s.Source, progress.Step)
	stop()
	done()
	var failed *keeper.StartError
	switch {
	case errors.As(err, &failed):
		return withCode(failed.Code, err)
	case errors.Is(err, context.Canceled):
		if _, err := keeper.Find(o.name); !errors.Is(err, keeper.ErrNone) {
			return withCode(exitFailed, fmt.Errorf("interrupted: %w", err))
		}
		return withCode(exitFailed, fmt.Errorf("interrupted: testbed %s is not up, and nothing is left of it", o.name))
	case err != nil:
		return withCode(exitFailed, err)
	}
	if quiet && !asJSON {
		return nil
	}
	return showOne(ctx, o.name, asJSON, false)
}
