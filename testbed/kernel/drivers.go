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
	if f.cfg.SoftHost != nil {
		d[topo.SoftHost] = softHosts{f}
	}
	return d
}

// of is the driver of a node; one that names no kind gets this backend's for its role.
func (d drivers) of(n *topo.Node) (fabric.Driver, error) {
	kind := n.Kind
	if kind == "" {
		kind = topo.LinuxSwitch
		if n.Role == topo.Host {
			kind = topo.RxeHost
		}
	}
	if driver, ok := d[kind]; ok {
		return driver, nil
	}
	return nil, fmt.Errorf("%s: the kernel backend makes %s and %s nodes, not %s (the soft backend does)", n.Name, topo.RxeHost, topo.LinuxSwitch, kind)
}

// checkPorts says what a node's ports can't be at the fabric's dilation.
func (f *Fabric) checkPorts(n *topo.Node) error {
	var errs []error
	for _, p := range f.cfg.Plan.Ports(n.Name) {
		if err := f.cfg.port(p, n.Role).Check(); err != nil {
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

// softHosts makes soft-hosts: the ports' trees are this backend's, what sends and receives on them is not.
type softHosts struct{ f *Fabric }

// Kind is soft-host.
func (softHosts) Kind() topo.Kind { return topo.SoftHost }

// Check refuses a node that is no host, or whose links can't be at the fabric's dilation.
func (d softHosts) Check(n *topo.Node) error {
	if n.Role != topo.Host {
		return fmt.Errorf("%s: a switch can't be a %s", n.Name, topo.SoftHost)
	}
	return d.f.checkPorts(n)
}

// Build makes the host's ports; its devices come when the cables are connected (host.start).
func (d softHosts) Build(_ context.Context, n *topo.Node) (fabric.Node, error) {
	made, err := d.f.newNode(n, topo.SoftHost)
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
