//go:build linux

package kernel

import (
	"context"
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

// drivers are this backend's, by the kind of node that they make.
type drivers map[topo.Kind]fabric.Driver

func driversOf(f *Fabric) drivers {
	d := drivers{topo.RxeHost: rxeHosts{f}, topo.LinuxSwitch: linuxSwitches{f}}
	if f.cfg.Foreign != nil {
		d[topo.SoftHost], d[topo.SoftSwitch] = foreignNodes{f, topo.SoftHost}, foreignNodes{f, topo.SoftSwitch}
	}
	return d
}

// kindOf is what a node is made of; one that names no kind is made of this backend's for its role.
func kindOf(n *topo.Node) topo.Kind {
	switch {
	case n.Kind != "":
		return n.Kind
	case n.Role == topo.Host:
		return topo.RxeHost
	}
	return topo.LinuxSwitch
}

// of is the driver of a node.
func (d drivers) of(n *topo.Node) (fabric.Driver, error) {
	kind := kindOf(n)
	if driver, ok := d[kind]; ok {
		return driver, nil
	}
	return nil, fmt.Errorf("%s: the kernel backend makes %s and %s nodes, not %s (the soft backend does)", n.Name, topo.RxeHost, topo.LinuxSwitch, kind)
}

// checkPorts says what a node's ports can't be at the fabric's dilation.
func (f *Fabric) checkPorts(n *topo.Node) error {
	var errs []error
	for _, p := range f.cfg.Plan.Ports(n.Name) {
		d, err := f.declared(p, n)
		if err == nil {
			err = d.Check()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: at a dilation of %v: %w", p.Ref, f.cfg.Dilation, err))
		}
	}
	return errors.Join(errs...)
}

// rxeHosts makes rxe-hosts. Building one makes its ports' trees; its RDMA devices come when the
// cables are connected (host.start).
type rxeHosts struct{ f *Fabric }

// Kind is rxe-host.
func (rxeHosts) Kind() topo.Kind { return topo.RxeHost }

// Check refuses a node that is no host, or whose links can't be at the fabric's dilation.
func (d rxeHosts) Check(n *topo.Node) error {
	if n.Role != topo.Host {
		return fmt.Errorf("%s: a switch can't be an %s", n.Name, topo.RxeHost)
	}
	return d.f.checkPorts(n)
}

// Build makes the host's ports.
func (d rxeHosts) Build(_ context.Context, n *topo.Node) (fabric.Node, error) {
	made, err := d.f.newNode(n, topo.RxeHost)
	if err != nil {
		return nil, err
	}
	return &host{node: made}, nil
}

// linuxSwitches makes linux-switches: the kernel forwards, the trees queue and mark.
type linuxSwitches struct{ f *Fabric }

// Kind is linux-switch.
func (linuxSwitches) Kind() topo.Kind { return topo.LinuxSwitch }

// Check refuses a node that is no switch, or whose links can't be at the fabric's dilation.
func (d linuxSwitches) Check(n *topo.Node) error {
	if n.Role != topo.Switch {
		return fmt.Errorf("%s: a host can't be a %s", n.Name, topo.LinuxSwitch)
	}
	return d.f.checkPorts(n)
}

// Build makes the switch's ports.
func (d linuxSwitches) Build(_ context.Context, n *topo.Node) (fabric.Node, error) {
	made, err := d.f.newNode(n, topo.LinuxSwitch)
	if err != nil {
		return nil, err
	}
	return made, nil
}
