package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocebed/rocebed/scenarios/incidents"
	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/testbed/report"
)

func newIncidentCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "incident",
		Short: "Failures that the field has published: list them, show them, make them happen, cure them",
		Long: `Failures that the field has published, with where they were, as scenarios that lie in this binary: without the cure, where the symptom is
asserted, and with it, where it is gone. docs/incidents.md tells of each.`,
		Example: `  rocebed incident list
  rocebed incident show victim-flow
  rocebed incident run victim-flow
  rocebed incident run victim-flow --cure --backend soft`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(newIncidentListCommand(), newIncidentShowCommand(), newIncidentRunCommand(), newIncidentTableCommand())
	return c
}

func newIncidentListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the incidents", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return json.NewEncoder(os.Stdout).Encode(incidents.All())
			}
			for _, x := range incidents.All() {
				fmt.Printf("%2d  %-19s  %-17s  %s\n", x.Number, x.Name, backendsOf(x), x.Title)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return c
}

func newIncidentShowCommand() *cobra.Command {
	var file, cured bool
	c := &cobra.Command{
		Use: "show NAME", Short: "Tell of an incident: what was seen, why, the scenario, the cure",
		Example: `  rocebed incident show victim-flow
  rocebed incident show 8 --file > victim-flow.yaml
  rocebed incident show 8 --file --cure > cured.yaml`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeIncidents,
		RunE: func(_ *cobra.Command, args []string) error {
			x, err := incidents.Find(args[0])
			switch {
			case err != nil:
				return withCode(exitUsage, err)
			case file:
				_, err = os.Stdout.Write(x.Text(cured))
				return err
			case cured:
				return errors.New("--cure goes with --file: the cure is shown in any case")
			}
			return tell(os.Stdout, x)
		},
	}
	c.Flags().BoolVar(&file, "file", false, "print the scenario file alone, for rocebed run")
	c.Flags().BoolVar(&cured, "cure", false, "with --file: the scenario with the cure")
	return c
}

// tell writes all that is known of an incident.
func tell(w io.Writer, x incidents.Incident) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d  %s\n\n", x.Number, x.Title)
	for _, part := range []struct{ head, text string }{
		{"published", x.Source}, {"seen", x.Seen}, {"mechanism", x.Mechanism}, {"cure", x.Cure}, {"look at", x.Look},
		{"runs on", backendsOf(x)}, {"files", "scenarios/incidents/" + x.File(false) + ", " + x.File(true)},
	} {
		fmt.Fprintf(&b, "%-10s %s\n", part.head, report.Wrap(part.text, 88, strings.Repeat(" ", 11)))
	}
	b.WriteString("\n")
	b.Write(x.Text(false))
	b.WriteString("\n# The cure:\n" + strings.Join(x.Diff(), "\n") + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func backendsOf(x incidents.Incident) string {
	var out []string
	for _, b := range x.Backends {
		out = append(out, string(b))
	}
	return strings.Join(out, " ")
}

func completeIncidents(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return incidents.Names(), cobra.ShellCompDirectiveNoFileComp
}

type incidentRun struct {
	testbed.RunOptions
	backend, dilation string
	cure, json        bool
}

func newIncidentRunCommand() *cobra.Command {
	var o incidentRun
	c := &cobra.Command{
		Use: "run NAME", Short: "Make an incident happen, or show that its cure works",
		Long: `Run an incident's scenario as rocebed run does, and say whether its symptom was there. With --cure the scenario has the cure, and the
symptom must not be there.

Exit codes: 0 the symptom was seen (with --cure: it wasn't) and all that the file expects holds, 1 not so, 2 wrong usage, or the backend
can't have it, 3 this machine can't.`,
		Example: `  rocebed incident run go-back-0-livelock
  rocebed incident run nic-pfc-storm --cure
  rocebed incident run victim-flow --backend kernel --json | jq .figures`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeIncidents,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := c.Flags()
	f.BoolVar(&o.cure, "cure", false, "with the cure")
	f.StringVar(&o.backend, "backend", string(testbed.Sim), "auto, kernel, soft or sim")
	f.StringVar(&o.dilation, "dilation", "", "how much slower than real time: auto or a power of two (default: what the scenario says); sim has it for DCQCN's least rate alone")
	f.StringVarP(&o.Out, "out", "o", "", "`FOLDER` for the record; must be empty or not exist (default out/NAME-TIME)")
	f.BoolVar(&o.AllowSlow, "allow-slow", false, "only warn where the machine was too busy for the links' rates")
	f.BoolVar(&o.json, "json", false, "print the result as one JSON object on standard output")
	completeWith(c, "backend", testbed.Backends())
	return c
}

func (o *incidentRun) run(cmd *cobra.Command, name string) error {
	x, err := incidents.Find(name)
	if err != nil {
		return withCode(exitUsage, err)
	}
	if o.Backend, err = testbed.ParseBackend(o.backend); err != nil {
		return withCode(exitUsage, fmt.Errorf("--backend: %w", err))
	}
	if o.dilation != "" {
		d, err := testbed.ParseDilation(o.dilation)
		if err != nil {
			return withCode(exitUsage, fmt.Errorf("--dilation: %w", err))
		}
		o.Dilation = &d
	}
	progress, done := watch(false)
	o.Progress = progress
	ctx, stop := testbed.Interruptible(cmd.Context(), progress.Note)
	r, err := incidents.Run(ctx, x, o.cure, o.RunOptions)
	stop()
	done()
	if err != nil {
		return withCode(codeOfRun(err), err)
	}
	if o.json {
		err = json.NewEncoder(os.Stdout).Encode(r)
	} else if err = report.Terminal(os.Stdout, &r.Summary, colour(os.Stdout)); err == nil {
		err = sayIncident(os.Stdout, r)
	}
	if err == nil && !r.AsToldOf() {
		err = exitCode(exitFailed)
	}
	return err
}

// sayIncident closes a run's tables with what it means for the incident.
func sayIncident(w io.Writer, r *incidents.Result) error {
	says := map[[2]bool]string{
		{false, true}: "the symptom is there (--cure runs it with the cure)", {false, false}: "the symptom is not there, and it should be",
		{true, false}: "the symptom is gone", {true, true}: "the symptom is there, in spite of the cure",
	}[[2]bool{r.Cure, r.Symptom}]
	if !r.Judged {
		says = "not judged: the run did not get to its end"
	}
	var figures []string
	for _, v := range r.Figures {
		figures = append(figures, v.Name+" "+v.String())
	}
	_, err := fmt.Fprintf(w, "\nincident %d, %s: %s\n  %s\n", r.Number, r.Incident, says, strings.Join(figures, ", "))
	return err
}

// codeOfRun is the exit code of an error that kept a run from having a verdict.
func codeOfRun(err error) int {
	var inside *testbed.GuestError
	switch {
	case errors.As(err, &inside):
		return inside.Code
	case errors.Is(err, context.Canceled):
		return exitFailed
	case errors.Is(err, testbed.ErrIncapable):
		return exitMachine
	}
	return codeOf(err)
}

type incidentTable struct {
	testbed.RunOptions
	backends       []string
	json, markdown bool
}

func newIncidentTableCommand() *cobra.Command {
	var o incidentTable
	c := &cobra.Command{
		Use: "table [NAME...]", Short: "Run incidents without and with their cures, and print what came out side by side",
		Long: `Run incidents (default: all) without and with their cures on backends that they are asserted on, one after the other. A machine that was
too busy for the links' rates is no failure here: rates and times then have a tilde.

Exit codes: 0 every symptom was seen and every cure works, 1 not so, 2 wrong usage.`,
		Example: `  rocebed incident table
  rocebed incident table victim-flow incast-without-ecn --backend sim,soft,kernel
  rocebed incident table --json | jq -c '.[] | [.incident, .without.symptom, .with.symptom]'`,
		ValidArgsFunction: completeIncidents,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := c.Flags()
	f.StringSliceVar(&o.backends, "backend", []string{string(testbed.Sim)}, "sim, soft, kernel; several with commas")
	f.StringVarP(&o.Out, "out", "o", "", "`FOLDER` for the records; must be empty or not exist (default out/incidents-TIME)")
	f.BoolVar(&o.json, "json", false, "print one JSON array")
	f.BoolVar(&o.markdown, "markdown", false, "print a table in Markdown")
	completeWith(c, "backend", testbed.Backends()[1:])
	return c
}

func (o *incidentTable) run(cmd *cobra.Command, names []string) error {
	which := incidents.All()
	if len(names) > 0 {
		which = nil
	}
	for _, name := range names {
		x, err := incidents.Find(name)
		if err != nil {
			return withCode(exitUsage, err)
		}
		if !slices.ContainsFunc(which, func(y incidents.Incident) bool { return x.Name == y.Name }) {
			which = append(which, x)
		}
	}
	var on []testbed.Backend
	for _, name := range o.backends {
		b, err := testbed.ParseBackend(name)
		if err == nil && b == testbed.Auto {
			err = errors.New("auto is no backend of its own here: name those that are meant")
		}
		if err != nil {
			return withCode(exitUsage, fmt.Errorf("--backend: %w", err))
		}
		on = append(on, b)
	}
	if !slices.ContainsFunc(which, func(x incidents.Incident) bool { return slices.ContainsFunc(on, x.On) }) {
		return withCode(exitUsage, fmt.Errorf("--backend %s: none of these incidents is asserted there (rocebed incident list says where each is)", strings.Join(o.backends, ",")))
	}
	if o.json && o.markdown {
		return withCode(exitUsage, errors.New("--json and --markdown exclude each other"))
	}
	if o.Out == "" {
		var err error
		if o.Out, err = record.Claim("out/incidents-" + time.Now().Format("20060102-150405")); err != nil {
			return withCode(exitMachine, err)
		}
		defer record.Unclaim(o.Out) // refused where there is a record now
	} else if err := record.Vacant(o.Out); err != nil {
		return withCode(exitUsage, err)
	}
	o.AllowSlow = true
	ctx, stop := testbed.Interruptible(cmd.Context(), func(text string) { fmt.Fprintln(os.Stderr, text) })
	defer stop()
	rows, well := []incidents.Row{}, true
	err := incidents.RunAll(ctx, which, on, o.RunOptions, func(r incidents.Row) {
		rows, well = append(rows, r), well && r.AsToldOf()
		if !o.json && !o.markdown {
			_ = incidents.Text(os.Stdout, []incidents.Row{r})
		}
	})
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("interrupted after %d rows", len(rows))
	}
	switch { // also what there is of an interrupted table
	case o.json:
		err = errors.Join(err, json.NewEncoder(os.Stdout).Encode(rows))
	case o.markdown:
		err = errors.Join(err, incidents.Markdown(os.Stdout, rows))
	}
	if err != nil {
		return withCode(exitFailed, err)
	}
	if !well {
		err = exitCode(exitFailed)
	}
	return err
}
