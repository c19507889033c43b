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
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/keeper"
	"github.com/rocebed/rocebed/testbed/linux"
)

func newStatusCommand() *cobra.Command {
	var asJSON, metrics bool
	var flag string
	c := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show the testbeds that are up",
		Long: `Show a testbed: its nodes with their namespaces, addresses and RDMA devices, its links, its time and whether the
machine keeps up with it. Without a name, the only testbed there is where it is up, else a list: of testbeds that are up, busy (a run has
it, or it is coming up or going down) or dead (rocebed clean removes what is left). With --json and a name, one object; with --json alone, a
list. Each has its state.

Exit codes: 0 the testbed is up, or the list was made, whatever is in it; 1 the testbed that was named is busy or dead, or did not answer; 2 wrong usage, or there is
none of that name; 3 not root.`,
		Example: `  rocebed status
  rocebed status lab --json | jq -r '.nodes[].ports[].rdma'
  rocebed status lab --metrics`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTestbeds,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := named(cmd, flag, args)
			if err != nil {
				return err
			}
			if name != "" {
				return showOne(cmd.Context(), name, asJSON, metrics)
			}
			return showAll(cmd.Context(), asJSON, metrics)
		},
	}
	nameFlag(c, &flag)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&metrics, "metrics", false, "print a reading of every metric instead")
	return c
}

// The states of testbeds.
const (
	stateUp   = "up"
	stateBusy = "busy" // a run has it, or it is coming up or going down
	stateDead = "dead" // whoever held it has died and left it
	stateGone = ""     // there is none any more
)

// entry is a testbed in a list, or one that isn't up.
type entry struct {
	Testbed string         `json:"testbed"`
	State   string         `json:"state"`
	Keeper  int            `json:"keeper,omitempty"`
	Status  *keeper.Status `json:"status,omitempty"`
	Error   string         `json:"error,omitempty"`
}

func showAll(ctx context.Context, asJSON, metrics bool) error {
	names, err := linux.Testbeds()
	if err != nil {
		return rootsAlone(err)
	}
	if metrics {
		return showOne(ctx, "", asJSON, metrics)
	}
	all := []entry{}
	for _, name := range names {
		if e := look(ctx, name); e.State != stateGone {
			all = append(all, e)
		}
	}
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(all)
	}
	if len(all) == 0 {
		fmt.Println("no testbed is up ('rocebed up SCENARIO' makes one)")
		return nil
	}
	if len(all) == 1 && all[0].State == stateUp {
		return showOne(ctx, all[0].Testbed, false, false)
	}
	return list(os.Stdout, all)
}

// list writes a table of testbeds, and why those that aren't up aren't.
func list(out io.Writer, all []entry) error {
	err := table(out, func(w io.Writer) {
		fmt.Fprintln(w, "TESTBED\tSTATE\tKEEPER\tBACKEND\tNODES\tLINKS\tSINCE")
		for _, e := range all {
			st := cmp.Or(e.Status, &keeper.Status{})
			since, keeper := "-", "-"
			if e.Keeper > 0 {
				keeper = strconv.Itoa(e.Keeper)
			}
			if e.Status != nil {
				since = st.Since.Format(time.TimeOnly)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s\n", e.Testbed, e.State, keeper, cmp.Or(where(st), "-"), len(st.Nodes), len(st.Links), since)
		}
	})
	for i, e := range all {
		if e.Error == "" {
			continue
		}
		if i == 0 || all[i-1].Error == "" {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, e.Error)
	}
	return err
}

func look(ctx context.Context, name string) entry {
	e := entry{Testbed: name, State: stateUp}
	if pid, living := linux.Living(name); living {
		e.Keeper = pid
	}
	c, err := find(name)
	if err == nil {
		var st keeper.Status
		if st, err = c.Status(ctx); err == nil {
			e.Status = &st
			return e
		}
	}
	e.State, e.Error = stateBusy, err.Error()
	switch {
	case errors.Is(err, keeper.ErrDead):
		e.State = stateDead
	case errors.Is(err, keeper.ErrNone):
		e.State = stateGone
	}
	return e
}

// notUp says of a testbed that was named and is there, but not up, what it is.
func notUp(ctx context.Context, name string, err error, asJSON bool) error {
	if !errors.Is(err, keeper.ErrBusy) && !errors.Is(err, keeper.ErrDead) {
		return err
	}
	if name != "" && asJSON {
		if jerr := json.NewEncoder(os.Stdout).Encode(look(ctx, name)); jerr != nil {
			return jerr
		}
	}
	return withCode(exitFailed, err)
}

func showOne(ctx context.Context, name string, asJSON, metrics bool) error {
	c, err := find(name)
	if err != nil {
		return notUp(ctx, name, err, asJSON)
	}
	if metrics {
		m, err := c.Metrics(ctx)
		if err != nil {
			return withCode(exitFailed, err)
		}
		return showMetrics(m, asJSON)
	}
	st, err := c.Status(ctx)
	if err != nil {
		return withCode(exitFailed, err)
	}
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(struct {
			State string `json:"state"`
			keeper.Status
		}{stateUp, st})
	}
	if err := describe(os.Stdout, &st); err != nil {
		return err
	}
	faults, err := c.Faults(ctx)
	if err != nil {
		return answered(err)
	}
	there := slices.DeleteFunc(faults.Faults, func(f fabric.FaultState) bool { return f.State == fabric.FaultHealed || f.State == fabric.FaultNever })
	if len(there) == 0 {
		return nil
	}
	fmt.Println()
	return faultTable(os.Stdout, there)
}

func showMetrics(m keeper.Metrics, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(m)
	}
	for _, s := range m.Samples {
		fmt.Printf("%s%q %v\n", s.Name, s.Labels, s.Value)
	}
	if m.Error != "" {
		fmt.Fprintln(os.Stderr, "rocebed: some could not be read:", m.Error)
	}
	return nil
}

func where(st *keeper.Status) string {
	if st.Guest != nil {
		return st.Backend + " (guest)"
	}
	return st.Backend
}

func describe(out io.Writer, st *keeper.Status) error {
	fmt.Fprintf(out, "testbed %s: %s, up since %s, keeper %d\n", st.Testbed, where(st), st.Since.Format(time.DateTime), st.Keeper)
	if g := st.Guest; g != nil {
		fmt.Fprintf(out, "guest: kernel %s under %s, %d MiB, %d processors, process %d\n", g.Kernel, g.Accel, g.MemoryMB, g.CPUs, g.PID)
	}
	kept := "the machine keeps up"
	if !st.KeptUp {
		kept = "the machine did not keep up: " + st.Late
	}
	fmt.Fprintf(out, "time: dilation %d, %v of fabric time so far; %s\n", st.Dilation, st.Fabric.Round(time.Microsecond), kept)
	for _, w := range st.Warnings {
		fmt.Fprintln(out, "warning:", w)
	}
	fmt.Fprintln(out)
	if err := table(out, func(w io.Writer) {
		fmt.Fprintln(w, "NODE\tKIND\tPORT\tADDRESS\tRDMA\tPEER\tNAMESPACE")
		for _, n := range st.Nodes {
			for i, p := range n.Ports {
				name, kind, ns := n.Name, cmp.Or(string(n.Kind), string(n.Role)), n.Namespace
				if n.Process != 0 {
					kind = fmt.Sprintf("%s (process %d)", kind, n.Process)
				}
				if i > 0 {
					name, kind, ns = "", "", ""
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, kind, p.Name, p.Addr, cmp.Or(p.RDMA, "-"), p.Peer, ns)
			}
		}
	}); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return table(out, func(w io.Writer) {
		fmt.Fprintln(w, "LINK\tRATE\tDELAY\tMTU")
		for _, l := range st.Links {
			fmt.Fprintf(w, "%s - %s\t%v\t%v\t%d\n", l.A, l.B, l.Rate, l.Delay, l.MTU)
		}
	})
}

func table(out io.Writer, fill func(io.Writer)) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fill(w)
	return w.Flush()
}
