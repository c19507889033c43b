package main

import (
	"testing"

	"github.com/spf13/cobra"
)

// A command that has a flag for a testbed's name looks for testbeds, or makes one.
func TestCommandsThatLookForTestbedsDoSoInTheUsersOwnWorld(t *testing.T) {
	found := 0
	var look func(top, c *cobra.Command)
	look = func(top, c *cobra.Command) {
		if c.Flags().Lookup("name") != nil && !c.Hidden { // `up` starts the hidden one, where it is itself
			found++
			if !makesTestbeds(top.Name()) && !findsTestbeds(top.Name()) {
				t.Errorf("%s has the flag --name and is not run where a user's testbeds are", c.CommandPath())
			}
		}
		for _, sub := range c.Commands() {
			look(top, sub)
		}
	}
	for _, make := range keeperCommands {
		c := make()
		look(c, c)
	}
	if found < 5 {
		t.Errorf("only %d commands have the flag --name", found)
	}
}
