//go:build !linux

package main

import "github.com/spf13/cobra"

// keeperCommands need Linux.
var keeperCommands []func() *cobra.Command
