package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// withUsage has a command, and those below it, say how it is used when its flags or arguments are
// wrong.
func withUsage(c *cobra.Command) {
	c.SetFlagErrorFunc(misused)
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return misused(cmd, err)
			}
			return nil
		}
	}
	for _, below := range c.Commands() {
		withUsage(below)
	}
}

func misused(cmd *cobra.Command, err error) error {
	what := err.Error()
	if n, ok := errors.AsType[*strconv.NumError](err); ok {
		what = strings.Replace(what, n.Error(), n.Err.Error(), 1) // without the name of a Go function
	}
	path := cmd.CommandPath()
	return fmt.Errorf("%s: %s\nusage: %s\n'%s --help' says more", strings.TrimPrefix(path, "rocebed "), what, cmd.UseLine(), path)
}
