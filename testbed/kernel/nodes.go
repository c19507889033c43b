//go:build linux

package kernel

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/testbed/kernel/nldev"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads/verbs"
	"github.com/rocebed/rocebed/workloads/verbs/ibv"
)

// node is what rxe-hosts and linux-switches have in common: a namespace and its ports' trees.
type node struct {
	name  string
	kind  topo.Kind
	ns    *linux.Namespace
	ports *ports
}

// Name is the topology's name for the node.
func (n *node) Name() string { return n.name }

// Kind is what the node is made of.
func (n *node) Kind() topo.Kind { return n.kind }

// Close lets go of the node. Its namespace, with the trees in it, is the testbed's.
func (n *node) Close(context.Context) error {
	if n.ports == nil {
		return nil
	}
	return n.ports.close()
}

// newNode declares and makes the trees of a node's ports.
func (f *Fabric) newNode(n *topo.Node, kind topo.Kind) (*node, error) {
	made := &node{name: n.Name, kind: kind, ns: f.wiring.Node(n.Name)}
	declared, numbers := map[string]declaration{}, map[string]int{}
	var err error
	for _, p := range f.cfg.Plan.Ports(n.Name) {
		if declared[p.Ref.Port], err = f.declared(p, n); err != nil {
			return nil, err
		}
		numbers[p.Ref.Port] = f.numbers[p.Ref]
	}
	if made.ports, err = newPorts(made.ns, declared, f.engine, numbers, func(l linux.Link) engine.Place { return f.place(n, l) }); err != nil {
		return nil, err
	}
	return made, nil
}

// host is an rxe-host.
type host struct {
	*node
	loop *loop.Real
	nics []fabric.NIC
	rdma *nldev.Conn // as the host's namespace sees it
	devs []rxe
}

// rxe is an rxe device of a host.
type rxe struct {
	ref    topo.PortRef
	device nldev.Device
}

// Loop is the host's loop.
func (h *host) Loop() loop.Loop { return h.loop }

// NICs are the host's RDMA devices, in port order.
func (h *host) NICs() []fabric.NIC { return h.nics }

// start puts rxe on the host's NICs and opens them. The links are up by now.
func (h *host) start(ctx context.Context, f *Fabric) error {
	h.loop = loop.NewReal(f.cfg.Dilation, f.epoch)
	if err := h.ns.Do(func() (err error) { h.rdma, err = nldev.Open(); return err }); err != nil {
		return fmt.Errorf("%s: %w", h.name, err)
	}
	for _, p := range f.cfg.Plan.Ports(h.name) {
		if err := ctx.Err(); err != nil {
			return err
		}
		l, _ := h.ns.Link(p.Ref.Port)
		name, err := addDevice(f.cfg.Testbed, h.ns, l, f.exclusive)
		if err != nil {
			return err
		}
		d, ok, err := h.rdma.Find(name)
		if err == nil && !ok {
			err = fmt.Errorf("the kernel made RDMA device %s and %s doesn't see it", name, h.name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.Ref, err)
		}
		h.devs = append(h.devs, rxe{p.Ref, d})
		if err := h.open(f, p, name); err != nil {
			return err
		}
	}
	return nil
}

// rdmaFile is a connection to RDMA's netlink in the host's namespace, for another process.
func (h *host) rdmaFile() (file *os.File, err error) {
	err = h.ns.Do(func() error {
		c, err := nldev.Open()
		if err != nil {
			return err
		}
		defer c.Close()
		file, err = c.File()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.name, err)
	}
	return file, nil
}

// open opens a NIC's device. A device that belongs to the namespace alone can only be opened
// from inside.
func (h *host) open(f *Fabric, p topo.PlanPort, name string) error {
	var d verbs.Device
	err := h.ns.Do(func() (err error) {
		d, err = ibv.Open(h.loop, name, ibv.Options{Dilation: f.cfg.Dilation, Label: p.Ref.String(), Warn: f.warn})
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", p.Ref, err)
	}
	want := netip.AddrFrom16(p.Addr.Addr().As16())
	nic := fabric.NIC{Port: p.Ref, Rail: p.Rail, Device: d, GIDIndex: -1}
	for i, g := range d.GIDs() {
		if g == want {
			nic.GIDIndex, nic.GID = i, g
			break
		}
	}
	h.nics = append(h.nics, nic)
	if nic.GIDIndex < 0 {
		return fmt.Errorf("%s: device %s has no GID for %v (it has %v)", p.Ref, name, p.Addr.Addr(), d.GIDs())
	}
	return nil
}

// Close closes the host's devices and its loop, and deletes the rxe devices.
func (h *host) Close(ctx context.Context) error {
	var errs []error
	for len(h.nics) > 0 {
		d := h.nics[len(h.nics)-1].Device
		if err := closeDevice(ctx, h.loop, d); err != nil {
			return errors.Join(append(errs, fmt.Errorf("%s: close %s: %w", h.name, d.Name(), err))...)
		}
		h.nics = h.nics[:len(h.nics)-1]
	}
	if h.loop != nil {
		h.loop.Close()
	}
	if h.rdma != nil {
		errs = append(errs, h.rdma.Close())
		h.rdma = nil
	}
	return errors.Join(append(errs, h.node.Close(ctx))...)
}

func closeDevice(ctx context.Context, l *loop.Real, d verbs.Device) error {
	closed := make(chan error, 1)
	if err := l.Do(ctx, func() { d.Close(func(err error) { closed <- err }) }); err != nil {
		return err
	}
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
