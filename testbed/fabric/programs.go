package fabric

import "github.com/rocebed/rocebed/topo"

// Kinds is what a Fabric implements that can say what it made a node of, where the topology left
// the choice to the backend.
type Kinds interface {
	// Kind is empty for an unknown node.
	Kind(node string) topo.Kind
}

// Processes is what a Fabric implements whose hosts may have a process each.
type Processes interface {
	// Process is the number of the host's own process; 0: it has none.
	Process(host string) (pid int)
}

// Programs is what a Fabric implements when real programs can run on its nodes.
type Programs interface {
	// ProgramEnv is what a program on the node needs in its environment ("NAME=value") for its
	// timeouts to fit the fabric's dilation, and notes for the user about what can't be had.
	ProgramEnv(node string) (env, notes []string, err error)
}
