//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rocebed/rocebed/testbed/keeper"
	"github.com/rocebed/rocebed/testbed/linux"
)

func newDownCommand() *cobra.Command {
	var flag string
	c := &cobra.Command{
		Use:   "down [NAME]",
		Short: "Take a testbed down",
		Long: `Take a testbed down: programs that still run on its nodes are ended, everything that was made is removed. Without a
name, the only testbed there is. What a keeper left that died is removed too.`,
		Example:           "  rocebed down\n  rocebed down lab",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTestbeds,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := named(cmd, flag, args)
			if err != nil {
				return err
			}
			return down(cmd.Context(), name)
		},
	}
	nameFlag(c, &flag)
	return c
}

func down(ctx context.Context, name string) error {
	progress, done := watch(false)
	defer done()
	c, err := find(name)
	if errors.Is(err, keeper.ErrDead) {
		return clean(ctx, linux.CleanOptions{Names: deadNames(name)}, false)
	}
	if err != nil {
		return err
	}
	return withCode(exitFailed, c.Down(ctx, progress.Step))
}

// deadNames is the testbed named, or the only one.
func deadNames(name string) []string {
	if name != "" {
		return []string{name}
	}
	names, _ := linux.Testbeds()
	return names
}

func newCleanCommand() *cobra.Command {
	var opt linux.CleanOptions
	var asJSON bool
	c := &cobra.Command{
		Use:   "clean [NAME...]",
		Short: "Remove what testbeds left whose keeper is dead",
		Long: `Remove what testbeds left on this machine whose keeper, or whose run, has died: after a kill -9 or a crash. What
rocebed did not make is never touched, and neither is what a living process holds; --all ends the living too.`,
		Example:           "  rocebed clean\n  rocebed clean --all",
		ValidArgsFunction: completeTestbeds,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range args {
				if err := linux.CheckName(name); err != nil {
					return err
				}
				opt.Names = append(opt.Names, name)
			}
			return clean(cmd.Context(), opt, asJSON)
		},
	}
	c.Flags().BoolVar(&opt.All, "all", false, "take living testbeds down too")
	c.Flags().BoolVar(&asJSON, "json", false, "print what was done as JSON")
	return c
}

func clean(ctx context.Context, opt linux.CleanOptions, asJSON bool) error {
	if names, err := linux.Testbeds(); os.Geteuid() != 0 && (err != nil || len(names) > 0) {
		return withCode(exitMachine, errors.New("clean: removing network namespaces needs root"))
	}
	done, err := linux.Clean(ctx, opt)
	if asJSON {
		if done == nil {
			done = []linux.Cleaned{}
		}
		if jerr := json.NewEncoder(os.Stdout).Encode(done); jerr != nil {
			return jerr
		}
	} else {
		for _, c := range done {
			fmt.Println(c)
		}
		if len(done) == 0 {
			fmt.Println("nothing to clean")
		}
	}
	return withCode(exitFailed, err)
}

func completeTestbeds(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names, _ := linux.Testbeds()
	return names, cobra.ShellCompDirectiveNoFileComp
}
