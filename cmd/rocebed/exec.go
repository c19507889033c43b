//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/guest"
	"github.com/rocebed/rocebed/testbed/keeper"
	"github.com/rocebed/rocebed/testbed/linux"
)

// What shells return for a program that can't be run.
const (
	exitCannotRun = 126
	exitNotFound  = 127
)

type execOptions struct {
	name  string
	quiet bool
}

func newExecCommand() *cobra.Command {
	var o execOptions
	c := &cobra.Command{
		Use:   "exec [flags] NODE -- CMD [ARG...]",
		Short: "Run a program on a node of a testbed that is up",
		Long: `Run a program on a node of a testbed that is up. Terminal, input, output, signals and the exit code are the
program's own. Real programs see wall time: their timeouts are raised to fit the fabric's dilation where they go through
libibverbs or TCP, and what they print is wall time.`,
		Example: `  rocebed exec h1 -- ibv_devinfo
  rocebed exec h8 -- ib_write_bw -d rb-quickstart.h8~eth0 &
  rocebed exec h1 -- ib_write_bw -d rb-quickstart.h1~eth0 10.0.2.7
  rocebed exec --name lab leaf1 -- ip route
  rocebed exec h1 -- bash`,
		Args: cobra.MinimumNArgs(2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nodesOf(cmd, o.name), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0], args[1:]) },
	}
	nameFlag(c, &o.name)
	c.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "say nothing about wall time")
	c.Flags().SetInterspersed(false)
	return c
}

func (o *execOptions) run(cmd *cobra.Command, node string, argv []string) error {
	if argv[0] == "--" {
		argv = argv[1:]
	}
	if len(argv) == 0 {
		return errors.New("exec: no program named")
	}
	name, err := named(cmd, o.name, nil)
	if err != nil {
		return err
	}
	c, err := find(name)
	if err != nil {
		return err
	}
	p, err := c.Program(cmd.Context(), node)
	if err != nil {
		return err
	}
	if p.Guest {
		return o.inGuest(cmd, c, node, argv)
	}
	if !o.quiet {
		o.label(p)
	}
	err = linux.ProgramIn(c.Testbed(), node, p.Inode, argv, append(os.Environ(), p.Env...))
	// It is still this program: the other did not start.
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return withCode(exitNotFound, err)
	}
	return withCode(exitCannotRun, err)
}

// label says on standard error what the program's times are.
func (o *execOptions) label(p keeper.Program) {
	if p.Dilation > 1 {
		d := loop.Dilation(p.Dilation)
		fmt.Fprintf(os.Stderr, "rocebed: %s prints wall time; this fabric runs %d times slower, so 1s of it is %v of the fabric's time\n", p.Node, p.Dilation, d.Fabric(time.Second))
	}
	for _, n := range p.Notes {
		fmt.Fprintln(os.Stderr, "rocebed:", n)
	}
}

// inGuest has the guest's own rocebed do the same.
func (o *execOptions) inGuest(cmd *cobra.Command, c *keeper.Client, node string, argv []string) error {
	g, err := c.Guest()
	if err != nil {
		return err
	}
	defer g.Close()
	inside := []string{guest.BinaryPath, "exec", "--name", c.Testbed()}
	if o.quiet {
		inside = append(inside, "--quiet")
	}
	st, err := g.Attach(cmd.Context(), guest.Cmd{Argv: append(append(inside, node, "--"), argv...)})
	if err != nil {
		return withCode(exitCannotRun, err)
	}
	if st.Code != 0 {
		return exitCode(st.Code)
	}
	return nil
}

func nodesOf(cmd *cobra.Command, name string) []string {
	c, err := find(name)
	if err != nil {
		return nil
	}
	st, err := c.Status(cmd.Context())
	if err != nil {
		return nil
	}
	var names []string
	for _, n := range st.Nodes {
		names = append(names, n.Name)
	}
	return names
}
