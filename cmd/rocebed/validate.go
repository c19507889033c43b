package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/topo/strict"
)

func newValidateCommand() *cobra.Command {
	var asJSON bool
	var backend string
	c := &cobra.Command{
		Use:   "validate SCENARIO...",
		Short: "Check scenario files without creating anything",
		Long: `Check scenario files: keys, units, names, the topology and its plan, workloads, faults and expectations; where
the scenario or --backend names a backend, also what that can't do. All problems of a file are said at once, each with file, line and
column. The exit code is 2 if there are any. What can be had and is hardly meant (a threshold that no queue reaches, PFC or ECN in priorities where the
traffic isn't, headroom that is too small for its link) is a warning, and the exit code 0.`,
		Example: "  rocebed validate scenarios/*.yaml\n  rocebed validate --backend kernel my.yaml\n  rocebed validate --json my.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return validate(args, backend, asJSON) },
	}
	c.Flags().StringVar(&backend, "backend", "", "auto, kernel, soft or sim: check for this one (default: what the scenario says)")
	completeWith(c, "backend", testbed.Backends())
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object: valid, problems with their places, and warnings with theirs if there are any")
	return c
}

// placed is a problem as JSON.
type placed struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Path    string `json:"path"`
	Problem string `json:"problem"`
}

func place(p *strict.Problem) placed {
	return placed{p.File, p.Line, p.Col, p.Path, p.Err.Error()}
}

func validate(paths []string, backend string, asJSON bool) error {
	var want testbed.Backend
	if backend != "" {
		var err error
		if want, err = testbed.ParseBackend(backend); err != nil {
			return withCode(exitUsage, fmt.Errorf("--backend: %w", err))
		}
	}
	all, doubts := []placed{}, []placed{}
	for _, path := range paths {
		s, err := testbed.Load(path)
		if err == nil {
			err = testbed.CheckBackend(s, want)
		}
		var ps strict.Problems
		switch {
		case err == nil:
			for _, p := range testbed.Doubts(s, want) {
				doubts = append(doubts, place(p))
				if !asJSON {
					fmt.Fprintf(os.Stderr, "%s:%d:%d: warning: %v\n", p.File, p.Line, p.Col, p.Err)
				}
			}
			if !asJSON {
				fmt.Println(testbed.Describe(s))
			}
			continue
		case errors.As(err, &ps):
			for _, p := range ps {
				all = append(all, place(p))
			}
		default:
			all = append(all, placed{File: path, Problem: err.Error()})
		}
		if !asJSON {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if asJSON {
		said := map[string]any{"valid": len(all) == 0, "problems": all}
		if len(doubts) > 0 {
			said["warnings"] = doubts
		}
		if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
			return err
		}
	}
	if len(all) > 0 {
		return exitCode(exitUsage)
	}
	return nil
}
