package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/report"
	"github.com/rocebed/rocebed/topo"
)

type runOptions struct {
	testbed.RunOptions
	backend  string
	dilation string
	seed     uint64
	captures []string
	json     bool
}

func newRunCommand() *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run [flags] SCENARIO",
		Short: "Run a scenario: fabric up, traffic and faults, record, verdict, fabric down",
		Long: `Run a scenario. The whole file is checked before anything is created; then the fabric comes up, workloads run,
faults strike and are healed, expectations are judged and the fabric is taken down. The record stays.

Exit codes: 0 the verdict is pass, 1 it is fail, 2 wrong usage or a wrong scenario, 3 this machine can't.
Ctrl-C heals the faults, takes the fabric down and leaves the record of what there was.`,
		Example: `  rocebed run scenarios/quickstart.yaml
  rocebed run --backend sim scenarios/quickstart.yaml
  rocebed run --backend kernel --guest scenarios/quickstart.yaml
  rocebed run --json --out /tmp/r1 --seed 7 scenarios/quickstart.yaml | jq .verdict
  rocebed run --capture leaf1:eth0 scenarios/quickstart.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := c.Flags()
	f.StringVar(&o.backend, "backend", "", "auto, kernel, soft or sim (default: what the scenario says)")
	f.StringVar(&o.dilation, "dilation", "", "how much slower than real time: auto or a power of two (default: what the scenario says); sim has it for DCQCN's least rate alone")
	f.Uint64Var(&o.seed, "seed", 0, "seed of payloads and random choices (default: what the scenario says)")
	f.BoolVar(&o.Guest, "guest", false, "run on the kernel of a microVM, whatever this machine can")
	f.StringVarP(&o.Out, "out", "o", "", "`FOLDER` for the record; must be empty or not exist (default out/NAME-TIME)")
	f.StringVar(&o.Testbed, "name", "", "name of the testbed that everything made belongs to (default the scenario's and the process id)")
	f.StringArrayVar(&o.captures, "capture", nil, "record the packets of port `NODE:PORT`; may be repeated")
	f.BoolVar(&o.json, "json", false, "print the result as one JSON object on standard output")
	f.BoolVar(&o.AllowSlow, "allow-slow", false, "only warn where the machine was too busy for the links' rates: bytes and counters hold, rates and times don't")
	f.BoolVar(&o.InGuest, "in-guest", false, "this is the guest")
	_ = f.MarkHidden("in-guest")
	completeWith(c, "backend", testbed.Backends())
	return c
}

func (o *runOptions) run(cmd *cobra.Command, path string) error {
	s, err := testbed.Load(path)
	if err != nil {
		return withCode(exitUsage, err)
	}
	if err := o.parse(cmd); err != nil {
		return withCode(exitUsage, err)
	}
	progress, done := watch(o.InGuest)
	o.Progress = progress
	ctx, stop := testbed.Interruptible(cmd.Context(), progress.Note)
	out, err := testbed.Run(ctx, s, o.RunOptions)
	stop()
	done()
	var inside *testbed.GuestError
	switch {
	case errors.As(err, &inside):
		return withCode(inside.Code, err)
	case errors.Is(err, context.Canceled):
		return withCode(exitFailed, errors.New("interrupted before anything ran"))
	case errors.Is(err, testbed.ErrIncapable):
		return withCode(exitMachine, err)
	case err != nil:
		return err
	}
	if o.json {
		err = json.NewEncoder(os.Stdout).Encode(out.Summary)
	} else {
		err = report.Terminal(os.Stdout, &out.Summary, colour(os.Stdout))
	}
	if err == nil && !out.Passed() {
		err = exitCode(exitFailed)
	}
	return err
}

// parse takes the flags over that are given as text, or only where they were given.
func (o *runOptions) parse(cmd *cobra.Command) (err error) {
	if o.backend != "" {
		if o.Backend, err = testbed.ParseBackend(o.backend); err != nil {
			return fmt.Errorf("--backend: %w", err)
		}
	}
	if o.dilation != "" {
		d, err := testbed.ParseDilation(o.dilation)
		if err != nil {
			return fmt.Errorf("--dilation: %w", err)
		}
		o.Dilation = &d
	}
	if cmd.Flags().Changed("seed") {
		o.Seed = &o.seed
	}
	for _, c := range o.captures {
		node, port, ok := strings.Cut(c, ":")
		if !ok {
			return fmt.Errorf("--capture: %q is no NODE:PORT", c)
		}
		o.Captures = append(o.Captures, topo.PortRef{Node: node, Port: port})
	}
	return nil
}

// watch shows progress on standard error: live on a terminal, else as lines, and more of them
// where a program reads them.
func watch(inGuest bool) (p testbed.Progress, done func()) {
	fd := int(os.Stderr.Fd())
	switch {
	case inGuest:
		return testbed.NewLines(os.Stderr, time.Second), func() {}
	case !term.IsTerminal(fd):
		return testbed.NewLines(os.Stderr, 5*time.Second), func() {}
	}
	t := testbed.NewTerminal(os.Stderr, func() int {
		if w, _, err := term.GetSize(fd); err == nil {
			return w
		}
		return 80
	})
	return t, t.Close
}

// colour says whether output to f may be coloured (no-color.org).
func colour(f *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(f.Fd()))
}

// completeWith makes the shell offer words for a flag.
func completeWith(c *cobra.Command, flag string, words []string) {
	_ = c.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	})
}
