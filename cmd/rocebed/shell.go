package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rocebed/rocebed/testbed/guest"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// shipFolder is where shipped files lie in the guest.
const shipFolder = "/x"

type shellOptions struct {
	guest   bool
	config  guest.Config
	ship    []string
	console string
	verbose bool
}

func newShellCommand() *cobra.Command {
	var o shellOptions
	c := &cobra.Command{
		Use:   "shell --guest [flags] [-- CMD [ARG...]]",
		Short: "Run a shell or a command in a throw-away guest",
		Long: `Boot a guest, run CMD in it (without one, a shell; without a terminal on standard input, the script there
with bash), and end the guest. Output, input, terminal, signals and the exit code are carried. Files given with --ship
are in /x/ under their own names.`,
		Example: `  rocebed shell --guest
  rocebed shell --guest -- uname -r
  rocebed shell --guest --ship ./my.test -- /x/my.test -test.v
  rocebed shell --guest < script.sh`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	c.Flags().BoolVar(&o.guest, "guest", false, "in a guest made for this command")
	c.Flags().IntVar(&o.config.MemoryMB, "mem", 0, "the guest's memory in MiB (default 1024)")
	c.Flags().IntVar(&o.config.CPUs, "cpus", 0, "the guest's processors (default the machine's, 2 to 4)")
	c.Flags().StringArrayVar(&o.ship, "ship", nil, "put `FILE` (or a folder) into /x/; may be repeated")
	c.Flags().StringVar(&o.config.Accel, "accel", "", "kvm or tcg (default: what works)")
	c.Flags().StringVar(&o.console, "console", "", "write the guest kernel's console to `FILE`")
	c.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "tell how the guest boots")
	return c
}

func (o *shellOptions) run(cmd *cobra.Command, args []string) error {
	if !o.guest {
		return errors.New("shell: say --guest for a guest of its own")
	}
	if err := o.check(cmd); err != nil {
		return err
	}
	for _, f := range o.ship {
		abs, err := filepath.Abs(f)
		if err != nil {
			return err
		}
		if _, err := os.Stat(abs); err != nil {
			return fmt.Errorf("--ship: %w", err)
		}
		o.config.Files = append(o.config.Files, guest.File{From: abs, To: filepath.Join(shipFolder, filepath.Base(abs))})
	}
	if o.console != "" {
		f, err := os.Create(o.console)
		if err != nil {
			return fmt.Errorf("--console: %w", err)
		}
		defer f.Close()
		o.config.Console = f
	}
	o.config.Progress = func(step string) {
		if o.verbose {
			progress(step)
		}
	}
	g, err := guest.Boot(cmd.Context(), o.config)
	if err != nil {
		return withCode(exitMachine, err)
	}
	defer g.Close()
	if o.verbose {
		tellReport(&g.Report)
	}
	st, err := g.Attach(cmd.Context(), guest.Cmd{Argv: shellArgv(args)})
	if err != nil {
		return withCode(exitMachine, err)
	}
	if st.Code != 0 {
		return exitCode(st.Code)
	}
	return nil
}

// The least memory that the guest boots with, in MiB, and the most processors that QEMU gives it.
const (
	leastMemory = 256
	mostCPUs    = 255
)

// check refuses flags that no guest could be booted with.
func (o *shellOptions) check(cmd *cobra.Command) error {
	c := &o.config
	switch given := cmd.Flags().Changed; {
	case given("mem") && c.MemoryMB < leastMemory:
		return fmt.Errorf("--mem: %d MiB are too few for a guest: at least %d", c.MemoryMB, leastMemory)
	case given("cpus") && (c.CPUs < 1 || c.CPUs > mostCPUs):
		return fmt.Errorf("--cpus: %d is not from 1 to %d", c.CPUs, mostCPUs)
	case given("accel") && c.Accel != "kvm" && c.Accel != "tcg":
		return fmt.Errorf("--accel: %q is neither kvm nor tcg", c.Accel)
	}
	return nil
}

// shellArgv is the command, or a shell: one that reads a script where nobody types.
func shellArgv(args []string) []string {
	switch {
	case len(args) > 0:
		return args
	case term.IsTerminal(int(os.Stdin.Fd())):
		return []string{"bash", "-l"}
	}
	return []string{"bash", "-s"}
}

func tellReport(r *guest.Report) {
	for _, f := range r.Failed {
		progress(fmt.Sprintf("a boot under %s failed after %.1f s: %s", f.Accel, f.Lasted.Seconds(), f.Reason))
	}
	progress(fmt.Sprintf("guest ready: kernel %s under %s, %d MiB, %d processors; booted in %.2f s (%.2f s in all)",
		r.Kernel, r.Accel, r.MemoryMB, r.CPUs, r.Boot.Seconds(), r.Total.Seconds()))
	for _, s := range r.Steps {
		progress(fmt.Sprintf("  %-10s %.2f s", s.Name, s.At.Seconds()))
	}
}

func newGuestInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:    guest.InitArg,
		Short:  "Be the init of a guest",
		Hidden: true,
		Args:   cobra.NoArgs,
		Run:    func(*cobra.Command, []string) { guest.Init() },
	}
}
