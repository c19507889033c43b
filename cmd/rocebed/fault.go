//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/keeper"
)

func newFaultCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "fault",
		Short: "Put faults on a testbed that is up, list them, heal them",
		Long: `Put faults on a testbed that is up, list them, heal them. A fault is written as in a scenario (docs/faults.md) and goes
through the same life: applied, read back, healed, checked that nothing of it is left. What is in force when the
testbed goes down is healed first.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(newFaultAddCommand(), newFaultListCommand(), newFaultHealCommand())
	return c
}

type faultAdd struct {
	name  string // of the testbed
	label string
	json  bool
	fault faultFlags
}

// faultFlags are a fault's keys and what they were given.
type faultFlags struct {
	kind, name string
	at, set    []string
	schedule   map[string]*string
	direction  string
}

var scheduleFlags = []struct{ flag, key, doc string }{
	{"after", "at", "`TIME` from now on at which it strikes, of the fabric (default now)"},
	{"for", "for", "`TIME` that it lasts (default until it is healed)"},
	{"every", "every", "`TIME` after which it comes back"},
	{"count", "count", "how often it strikes, with --every"},
	{"when", "when", "`EVENT` that it waits for: \"first cnp at h1\", \"metric np_cnp_sent > 100\", \"fault cut healed\""},
	{"until", "until", "`EVENT` that ends it"},
}

func newFaultAddCommand() *cobra.Command {
	var o faultAdd
	c := &cobra.Command{
		Use:   "add [flags] [TESTBED] FILE|-",
		Short: "Put faults on a testbed",
		Long: `Put faults on a testbed: those of a file (a list, a single one, or a scenario's key faults; - is standard input), or one
that flags describe. Their schedules count from now on, in fabric time. The command returns when those that are due at
once are in force and read back.

Exit codes: 1 it could not be applied, 2 the fault is wrong or this testbed can't have it.`,
		Example: `  rocebed fault add lab storm.yaml
  rocebed fault add lab --kind loss --at leaf1-spine1 --set probability=1% --for 5ms
  rocebed fault add --kind down --at leaf1-spine2 --fault cut
  echo '{kind: delay, delay: 20us, at: ["tier=spine"], schedule: {when: fault cut healed}}' | rocebed fault add -`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	nameFlag(c, &o.name)
	f := c.Flags()
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.StringVar(&o.label, "label", "", "what messages call the file")
	_ = f.MarkHidden("label")
	o.fault.flags(c)
	return c
}

func (o *faultFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.kind, "kind", "", "`KIND` of the fault (docs/faults.md has them all); no file then")
	f.StringVar(&o.name, "fault", "", "`NAME` of the fault (default its kind)")
	f.StringArrayVar(&o.at, "at", nil, "`SELECTOR` of what it strikes; may be repeated")
	f.StringArrayVar(&o.set, "set", nil, "`KEY=VALUE` of the fault; may be repeated")
	f.StringVar(&o.direction, "direction", "", "egress, ingress or both, of links")
	o.schedule = map[string]*string{}
	for _, s := range scheduleFlags {
		o.schedule[s.key] = f.String(s.flag, "", s.doc)
	}
	var kinds []string
	for _, k := range faults.Kinds() {
		kinds = append(kinds, string(k))
	}
	completeWith(c, "kind", kinds)
}

// source is the fault as a file would have it.
func (o *faultFlags) source() ([]byte, error) {
	var b strings.Builder
	line := func(key, value string) error {
		if strings.ContainsAny(key+value, "\n\r") {
			return fmt.Errorf("%s: a value has one line", key)
		}
		fmt.Fprintf(&b, "%s: %s\n", key, value)
		return nil
	}
	quoted := func(all []string) string {
		out := make([]string, len(all))
		for i, s := range all {
			out[i] = strconv.Quote(s)
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	errs := []error{line("kind", strconv.Quote(o.kind)), line("at", quoted(o.at))}
	if o.name != "" {
		errs = append(errs, line("name", strconv.Quote(o.name)))
	}
	if o.direction != "" {
		errs = append(errs, line("direction", strconv.Quote(o.direction)))
	}
	for _, s := range o.set {
		key, value, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("--set %q: write KEY=VALUE", s)
		}
		errs = append(errs, line(key, value))
	}
	first := true
	for _, s := range scheduleFlags {
		value := *o.schedule[s.key]
		if value == "" {
			continue
		}
		if first {
			b.WriteString("schedule:\n")
			first = false
		}
		if s.key == "when" || s.key == "until" {
			value = strconv.Quote(value)
		}
		errs = append(errs, line("  "+s.key, value))
	}
	return []byte(b.String()), errors.Join(errs...)
}

func (o *faultAdd) run(cmd *cobra.Command, args []string) error {
	var file string
	switch flags := o.fault.kind != ""; {
	case flags && len(args) > 1:
		return misused(cmd, errors.New("a file or --kind, not both"))
	case !flags && len(args) == 0:
		return misused(cmd, errors.New("which fault? Name a file, or give --kind"))
	case !flags:
		file = args[len(args)-1]
		args = args[:len(args)-1]
	}
	name, err := named(cmd, o.name, args)
	if err != nil {
		return err
	}
	var source []byte
	switch file {
	case "":
		source, err = o.fault.source()
		file = "the flags"
	case "-":
		source, err = io.ReadAll(os.Stdin)
		file = cmp.Or(o.label, "standard input")
	default:
		source, err = testbed.ReadFile(file)
	}
	if err != nil {
		return fmt.Errorf("fault: %w", err)
	}
	c, err := find(name)
	if err != nil {
		return err
	}
	states, err := c.AddFaults(cmd.Context(), file, source)
	return showFaults(states, answered(err), o.json)
}

// answered gives an error the exit code that the keeper asks for.
func answered(err error) error {
	if a, ok := errors.AsType[*keeper.AnswerError](err); ok {
		return withCode(a.Code, err)
	}
	return withCode(exitFailed, err)
}

func newFaultListCommand() *cobra.Command {
	var asJSON bool
	var flag string
	c := &cobra.Command{
		Use:   "list [TESTBED]",
		Short: "List a testbed's faults",
		Long: `List a testbed's faults: their state, since when they are in force, and what they have hit so far. A fault that is over stays
in the list until another takes its name.`,
		Example:           "  rocebed fault list\n  rocebed fault list lab --json | jq '.faults[] | select(.state == \"in force\")'",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTestbeds,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := named(cmd, flag, args)
			if err != nil {
				return err
			}
			c, err := find(name)
			if err != nil {
				return err
			}
			states, err := c.Faults(cmd.Context())
			return showFaults(states, answered(err), asJSON)
		},
	}
	nameFlag(c, &flag)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newFaultHealCommand() *cobra.Command {
	var all, asJSON bool
	var flag string
	c := &cobra.Command{
		Use:   "heal [flags] FAULT... | --all",
		Short: "Heal faults of a testbed",
		Long: `Heal faults of a testbed, by their names or those of their groups, the last applied first. They don't come back, whatever their
schedules say. The command returns when nothing of them is left; if something is, the exit code is 1.`,
		Example: "  rocebed fault heal cut\n  rocebed fault heal --name lab --all",
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return misused(cmd, errors.New("name faults, or give --all"))
			}
			name, err := named(cmd, flag, nil)
			if err != nil {
				return err
			}
			c, err := find(name)
			if err != nil {
				return err
			}
			states, err := c.HealFaults(cmd.Context(), args...)
			return showFaults(states, answered(err), asJSON)
		},
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return faultsOf(cmd.Context(), flag), cobra.ShellCompDirectiveNoFileComp
		},
	}
	nameFlag(c, &flag)
	c.Flags().BoolVar(&all, "all", false, "heal all faults")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func faultsOf(ctx context.Context, name string) (names []string) {
	c, err := find(name)
	if err != nil {
		return nil
	}
	states, err := c.Faults(ctx)
	if err != nil {
		return nil
	}
	for _, s := range states.Faults {
		names = append(names, s.Name)
	}
	return names
}

// showFaults prints what there is, and hands the error on.
func showFaults(states keeper.FaultStates, err error, asJSON bool) error {
	if err != nil && len(states.Faults) == 0 {
		return err
	}
	if asJSON {
		if states.Faults == nil {
			states.Faults = []fabric.FaultState{}
		}
		return errors.Join(err, json.NewEncoder(os.Stdout).Encode(states))
	}
	if len(states.Faults) == 0 {
		fmt.Println("no faults ('rocebed fault add' makes some)")
		return err
	}
	return errors.Join(err, faultTable(os.Stdout, states.Faults))
}

func faultTable(out io.Writer, all []fabric.FaultState) error {
	return table(out, func(w io.Writer) {
		fmt.Fprintln(w, "FAULT\tKIND\tAT\tSTATE\tSINCE\tSTRIKES\tHITS\tNOTE")
		for _, s := range all {
			since := "-"
			if s.Since != nil {
				since = s.Since.Local().Format(time.TimeOnly)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\n", s.Name, s.Kind, strings.Join(s.At, " "), s.State, since, s.Strikes, s.Hits, s.Note)
		}
	})
}
