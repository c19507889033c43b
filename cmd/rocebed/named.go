//go:build linux

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rocebed/rocebed/testbed/linux"
)

// nameFlag gives a command that is about one testbed the flag --name.
func nameFlag(c *cobra.Command, name *string) {
	c.Flags().StringVar(name, "name", "", "the testbed (default: the only one there is)")
	_ = c.RegisterFlagCompletionFunc("name", completeTestbeds)
}

// named is the testbed that a command is about, by --name or by its argument, empty for the only
// one there is. A name that was given and is empty (an unset variable) is refused: it does not
// mean the only one.
func named(cmd *cobra.Command, flag string, args []string) (string, error) {
	given := cmd.Flags().Changed("name")
	switch {
	case len(args) > 0 && given && args[0] != flag:
		return "", fmt.Errorf("%s: %q or %q? One at a time", cmd.Name(), flag, args[0])
	case len(args) > 0:
		return args[0], linux.CheckName(args[0])
	case given:
		return flag, linux.CheckName(flag)
	}
	return "", nil
}
