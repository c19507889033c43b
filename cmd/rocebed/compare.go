package main

import (
	"encoding/json"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/rocebed/rocebed/testbed/compare"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/testbed/report"
)

func newCompareCommand() *cobra.Command {
	var asJSON, asMarkdown bool
	c := &cobra.Command{
		Use:   "compare RECORD...",
		Short: "Put runs side by side: what each came to, what differs by more than chance, and why it may",
		Long: `Put runs side by side, by the records that they left. Rates, times and shares differ from a ratio of 1.25 on, counts when they lie
further apart than chance puts them (three standard deviations of Poisson's), what the scenario fixes when it isn't equal.
Where the backends explain a difference, the reasons are listed below; docs/backends.md has them all.

Exit codes: 0 every run passed, 1 one of them failed, 2 wrong usage, or no record, or one that was cut short.`,
		Example: `  rocebed run --backend sim --out /tmp/a scenarios/quickstart.yaml
  rocebed run --backend soft --out /tmp/b scenarios/quickstart.yaml
  rocebed compare /tmp/a /tmp/b
  rocebed compare --json /tmp/a /tmp/b | jq '.counters[] | select(.differs)'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, dirs []string) error {
			if asJSON && asMarkdown {
				return errors.New("--json and --markdown exclude each other")
			}
			var records []*record.Reader
			for _, dir := range dirs {
				r, err := record.Open(dir)
				if err != nil {
					return err
				}
				records = append(records, r)
			}
			found, err := compare.Records(metrics.Standard, records...)
			switch {
			case err != nil:
			case asJSON:
				err = json.NewEncoder(os.Stdout).Encode(found)
			case asMarkdown:
				err = report.ComparisonMarkdown(os.Stdout, found)
			default:
				err = report.Comparison(os.Stdout, found, colour(os.Stdout))
			}
			if err == nil && !found.Passed() {
				err = exitCode(exitFailed)
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().BoolVar(&asMarkdown, "markdown", false, "print a table in Markdown")
	return c
}
