//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/rocebed/rocebed/testbed/keeper"
	"github.com/rocebed/rocebed/testbed/linux"
)

// nameFlag gives a command that is about one testbed the flag --name.
func nameFlag(c *cobra.Command, name *string) {
	c.Flags().StringVar(name, "name", "", "the testbed (default: the only one there is)")
	_ = c.RegisterFlagCompletionFunc("name", completeTestbeds)
}

// find is keeper.Find; that only root can use testbeds is of this machine, not of the usage.
func find(name string) (*keeper.Client, error) {
	c, err := keeper.Find(name)
	return c, rootsAlone(err)
}

func rootsAlone(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return withCode(exitMachine, err)
	}
	return err
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
