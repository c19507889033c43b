package bed

import "github.com/rocebed/rocebed/testbed"

// A suite's program is also what fabrics start as their agents, and hosts as processes of their own.
func init() { testbed.ProcessIfAsked() }
