package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rocebed/rocebed/testbed"
)

func newVersionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Say what this rocebed is and what it was built with",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := testbed.Versions()
			if asJSON {
				return json.NewEncoder(os.Stdout).Encode(v)
			}
			for _, k := range slices.Sorted(maps.Keys(v)) {
				if _, err := fmt.Printf("%-10s %s\n", k, v[k]); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}
