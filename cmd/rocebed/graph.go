package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/graph"
	"github.com/spf13/cobra"
)

type graphOptions struct {
	format string
	out    string
	paths  bool
}

func newGraphCommand() *cobra.Command {
	var o graphOptions
	c := &cobra.Command{
		Use:   "graph SCENARIO [flags]\n  rocebed graph SCENARIO --paths SRC DST",
		Short: "Draw a scenario's topology, or list the paths across it",
		Long: `Draw the topology of a scenario file as DOT, Mermaid, JSON or SVG. Only the file's topology is looked at; nothing is
brought up, no rights are needed. With --paths, list every path that packets may take between two NICs.`,
		Example: `  rocebed graph scenarios/quickstart.yaml -o quickstart.svg
  rocebed graph scenarios/quickstart.yaml --format mermaid
  rocebed graph scenarios/quickstart.yaml --format json | jq '.nodes[] | .name, .routes'
  rocebed graph scenarios/quickstart.yaml --paths h1:eth0 h8:eth0`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.paths {
				return cobra.ExactArgs(3)(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	var names []string
	for _, f := range graph.Formats {
		names = append(names, string(f))
	}
	c.Flags().StringVar(&o.format, "format", "", strings.Join(names, ", ")+" (default by the ending of --out, else dot)")
	c.Flags().StringVarP(&o.out, "out", "o", "", "write to `FILE` instead of standard output")
	c.Flags().BoolVar(&o.paths, "paths", false, "list the paths from NIC SRC to NIC DST (\"h1:eth0\"; \"h1\" is its first NIC)")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *graphOptions) run(cmd *cobra.Command, args []string) error {
	data, err := testbed.ReadFile(args[0])
	if err != nil {
		return fmt.Errorf("scenario: %w", err)
	}
	plan, err := topo.FromScenario(args[0], data)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if o.paths {
		err = writePaths(&text, plan, args[1], args[2])
	} else {
		err = graph.Write(&text, o.chosen(), plan)
	}
	if err != nil {
		return err
	}
	if o.out == "" {
		_, err = cmd.OutOrStdout().Write(text.Bytes())
		return err
	}
	return os.WriteFile(o.out, text.Bytes(), 0o644)
}

func (o *graphOptions) chosen() graph.Format {
	switch ending := strings.TrimPrefix(filepath.Ext(o.out), "."); {
	case o.format != "":
		return graph.Format(o.format)
	case ending == "gv":
		return graph.DOT
	case ending == "mmd" || ending == "md":
		return graph.Mermaid
	case ending != "":
		return graph.Format(ending)
	}
	return graph.DOT
}

// mostPaths is how many paths are worth reading.
const mostPaths = 10_000

func writePaths(text *bytes.Buffer, plan *topo.Plan, from, to string) error {
	src, err := nicNamed(plan, from)
	if err != nil {
		return err
	}
	dst, err := nicNamed(plan, to)
	if err != nil {
		return err
	}
	n, err := plan.PathCount(src, dst)
	switch {
	case err != nil:
		return err
	case n == 0:
		return fmt.Errorf("%s does not reach %s", src, dst)
	case n > mostPaths:
		return fmt.Errorf("%d paths from %s to %s: more than %d are not listed", n, src, dst, mostPaths)
	}
	paths, err := plan.Paths(src, dst)
	if err != nil {
		return err
	}
	for _, p := range paths {
		fmt.Fprint(text, p[0].Out)
		for _, hop := range p[1:] {
			fmt.Fprintf(text, " > %s", hop.Out)
		}
		fmt.Fprintf(text, " > %s\n", p[len(p)-1].In)
	}
	return nil
}

// nicNamed reads "h1:eth1"; "h1" is its first NIC.
func nicNamed(plan *topo.Plan, s string) (topo.PortRef, error) {
	if n := plan.Node(s); n != nil && len(n.Ports) > 0 {
		return topo.PortRef{Node: s, Port: n.Ports[0].Name}, nil
	}
	return topo.ParsePortRef(s)
}
