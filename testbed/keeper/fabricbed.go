//go:build linux

package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo/strict"
)

// Here is a testbed on this machine's kernel.
type Here struct {
	Testbed  string
	Scenario string // the scenario's name
	Backend  string
	Fabric   fabric.Fabric
	Faults   fabric.LiveFaults // nil: none can be had
}

type fabricBed struct {
	Here
	since time.Time
}

// OnFabric is the bed of a fabric that is up. The bed takes the fabric down.
func OnFabric(h Here) Bed { return &fabricBed{h, time.Now()} }

// Status says what the fabric is.
func (b *fabricBed) Status(context.Context) (Status, error) {
	f := b.Fabric
	st := Status{
		Testbed: b.Testbed, Scenario: b.Scenario, Backend: b.Backend,
		Keeper: os.Getpid(), Since: b.since,
		Dilation: f.Dilation().Factor(), Fabric: f.Dilation().Fabric(time.Since(f.Epoch())),
		KeptUp: true, Warnings: f.Warnings(),
	}
	if err := f.KeepUp(); err != nil {
		st.KeptUp, st.Late = false, err.Error()
	}
	devices := map[string]fabric.NIC{}
	for _, h := range f.Hosts() {
		for _, n := range h.NICs() {
			devices[n.Port.String()] = n
		}
	}
	t, p := f.Topology(), f.Plan()
	for i := range t.Nodes {
		n := &t.Nodes[i]
		ns := NodeStatus{Name: n.Name, Role: n.Role, Kind: n.Kind, Namespace: linux.NamespaceName(b.Testbed, n.Name)}
		if k, ok := f.(fabric.Kinds); ok {
			ns.Kind = k.Kind(n.Name)
		}
		if k, ok := f.(fabric.Processes); ok {
			ns.Process = k.Process(n.Name)
		}
		for _, port := range p.Ports(n.Name) {
			ps := PortStatus{Name: port.Ref.Port, Addr: port.Addr.String(), MAC: port.MAC.String(), Peer: port.Peer.String()}
			if d, ok := devices[port.Ref.String()]; ok {
				ps.RDMA, ps.GIDIndex, ps.GID = d.Device.Name(), d.GIDIndex, d.GID.String()
			}
			ns.Ports = append(ns.Ports, ps)
		}
		st.Nodes = append(st.Nodes, ns)
	}
	for i := range t.Links {
		l := &t.Links[i]
		st.Links = append(st.Links, LinkStatus{A: l.A, B: l.B, Rate: l.Rate, Delay: l.Delay, MTU: l.MTU})
	}
	return st, nil
}

// Program resolves a node.
func (b *fabricBed) Program(_ context.Context, node string) (Program, error) {
	t := b.Fabric.Topology()
	if t.Node(node) == nil {
		return Program{}, fmt.Errorf("testbed %s has no node %q%s", b.Testbed, node, strict.DidYouMean(node, t.NodeNames()))
	}
	p := Program{Node: node, Dilation: b.Fabric.Dilation().Factor()}
	var err error
	if p.Inode, err = linux.NodeInode(b.Testbed, node); err != nil {
		return Program{}, err
	}
	if f, ok := b.Fabric.(fabric.Programs); ok {
		if p.Env, p.Notes, err = f.ProgramEnv(node); err != nil {
			return Program{}, err
		}
	}
	return p, nil
}

// Metrics reads every metric once.
func (b *fabricBed) Metrics(ctx context.Context) (Metrics, error) {
	samples, err := b.Fabric.Collect(ctx)
	m := Metrics{Samples: samples}
	if err != nil {
		m.Error = err.Error()
	}
	return m, nil
}

func (b *fabricBed) Ended() <-chan struct{} { return nil }
func (b *fabricBed) Err() error             { return nil }

// Faults are those of the fabric.
func (b *fabricBed) Faults() fabric.LiveFaults { return b.Here.Faults }

// Close heals what is in force and takes the fabric down, whatever healing came to.
func (b *fabricBed) Close(ctx context.Context) error {
	var err error
	if f := b.Here.Faults; f != nil {
		healing, cancel := context.WithTimeout(ctx, healWithin)
		defer cancel()
		if err = f.Close(healing); err != nil {
			err = fmt.Errorf("testbed %s: healing its faults: %w", b.Testbed, err)
		}
	}
	return errors.Join(err, b.Fabric.Close(ctx))
}
