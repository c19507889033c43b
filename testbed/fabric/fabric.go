// Package fabric says what a living fabric is to the harness: nodes, hosts, ports and
// injections, whatever backend made them. Interfaces and types only; drivers implement them.
package fabric

import (
	"context"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// Node is a node brought to life.
type Node interface {
	Name() string
	Kind() topo.Kind
	// Close takes the node down; what it made is gone when it returns nil.
	Close(ctx context.Context) error
}

// Host is a node that sends and receives.
type Host interface {
	Node
	Loop() loop.Loop
	NICs() []NIC
}

// NIC is one RDMA device of a host and the port it sits on.
type NIC struct {
	Port   topo.PortRef
	Rail   int
	Device verbs.Device
	// GIDIndex is the RoCEv2 GID that routes in the fabric; GID is its value.
	GIDIndex int
	GID      verbs.GID
}

// Driver makes nodes of one kind. Its ports are wired before Build is called.
type Driver interface {
	Kind() topo.Kind
	// Check says what of the node this driver can't do, before anything is created.
	Check(n *topo.Node) error
	Build(ctx context.Context, n *topo.Node) (Node, error)
}

// Injector applies faults to a living fabric. Callbacks arrive on an unspecified goroutine.
type Injector interface {
	// Check refuses what this backend can't do, naming kind, feature and the backend that can.
	Check(spec faults.Spec) error
	// Apply starts the fault on every port it selects.
	Apply(spec faults.Spec, done func(Applied, error))
}

// Preparer is an Injector that can do ahead what takes time, so that the fault strikes when it is
// due. Prepare is called before traffic starts; not calling it only makes faults strike late.
type Preparer interface {
	Prepare(spec faults.Spec) error
}

// Connector is an Injector whose faults name packets by their connection. Connect tells of one as soon as its queue pairs are
// connected, and before it carries anything; it may be called from any goroutine, in virtual time on the control loop. heard is called once, on any goroutine, when
// every fault in force knows it.
type Connector interface {
	Connect(c packet.Connection, heard func())
}

// Connectors are several as one.
type Connectors []Connector

// ConnectorsOf are those of some injectors that are Connectors.
func ConnectorsOf(all ...Injector) (out Connectors) {
	for _, in := range all {
		if c, ok := in.(Connector); ok {
			out = append(out, c)
		}
	}
	return out
}

// Connect implements Connector.
func (all Connectors) Connect(c packet.Connection, heard func()) {
	one := loop.Countdown(len(all)+1, heard)
	for _, each := range all {
		each.Connect(c, one)
	}
	one()
}

// Applied is a fault in force.
type Applied interface {
	// Verify reads the fault back from the kernel or the model.
	Verify(done func(error))
	// Hits is how many packets (or events) the fault has touched since it was applied.
	Hits(done func(hits uint64, err error))
	// Heal undoes the fault. It may be called again after a failure.
	Heal(done func(error))
	// VerifyClean checks that nothing of the fault is left.
	VerifyClean(done func(error))
}
