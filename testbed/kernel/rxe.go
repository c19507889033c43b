//go:build linux

package kernel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/testbed/kernel/nldev"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

// kindRxe is an rxe device in a testbed's journal: its name and the node it belongs to.
const kindRxe = "rxe"

// deviceGone is how long the kernel may take to let go of a deleted device.
const deviceGone = 10 * time.Second

func init() {
	linux.RegisterRemover(kindRxe, linux.OrderDevice, removeDevices)
	linux.RegisterRemover(kindMode, orderMode, restoreMode)
}

// maxDeviceName keeps names short enough for tools that print them in columns; the kernel takes 63.
const maxDeviceName = 31

// deviceName is what a NIC's rxe device is called: unique on the machine, since devices of all
// namespaces share one name space. Neither nodes nor ports have a tilde in their names.
func deviceName(testbed string, ref topo.PortRef) string {
	return linux.ShortName(maxDeviceName, "rb-"+testbed+"."+ref.Node+"~"+ref.Port)
}

// addDevice puts an rxe device on a NIC and notes it in the journal first.
func addDevice(t *linux.Testbed, n *linux.Namespace, l linux.Link, exclusive bool) (name string, err error) {
	ref := topo.PortRef{Node: n.Node(), Port: l.Port}
	name = deviceName(t.Name(), ref)
	if err := t.Own(kindRxe, name, n.Node()); err != nil {
		return "", err
	}
	err = inNamespace(n, func(c *nldev.Conn) error { return c.AddRxe(name, l.Name) })
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
		err = fmt.Errorf("%w (needs rdma_rxe of Linux 7.1 or later)", err)
	}
	if err == nil && exclusive {
		err = moveDevice(name, n)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", ref, err)
	}
	return name, nil
}

// moveDevice takes a new device from the initial namespace, where it appears in exclusive mode.
func moveDevice(name string, n *linux.Namespace) error {
	c, err := nldev.Open()
	if err != nil {
		return err
	}
	defer c.Close()
	d, ok, err := c.Find(name)
	if err == nil && !ok {
		err = fmt.Errorf("RDMA device %s is not where the kernel puts new ones", name)
	}
	if err != nil {
		return err
	}
	return c.Move(d, n.FD())
}

// inNamespace runs fn with a connection to the RDMA subsystem as the namespace sees it.
func inNamespace(n *linux.Namespace, fn func(*nldev.Conn) error) error {
	var c *nldev.Conn
	err := n.Do(func() (err error) { c, err = nldev.Open(); return err })
	if err != nil {
		return fmt.Errorf("%s: %w", n.Node(), err)
	}
	defer c.Close()
	return fn(c)
}

// removeDevices deletes devices one at a time and waits until each is gone: deleting them and
// then their interfaces faster than the kernel lets go has crashed kernels.
func removeDevices(ctx context.Context, s *linux.Scene, ids [][]string) error {
	for _, id := range ids {
		if len(id) != 2 {
			continue
		}
		if err := removeDevice(ctx, s, id[0], id[1]); err != nil {
			return err
		}
	}
	return nil
}

// removeDevice looks in the device's namespace, and in ours, where it is seen in shared mode
// and where a device is that was not moved before its maker died.
func removeDevice(ctx context.Context, s *linux.Scene, name, node string) error {
	conn, err := nldev.Open()
	if err != nil {
		if errors.Is(err, unix.EPROTONOSUPPORT) {
			return nil // no RDMA subsystem, so no device
		}
		return err
	}
	defer conn.Close()
	conns := []*nldev.Conn{conn}
	if n, ok := namespaceOf(s, node); ok {
		var there *nldev.Conn
		if err := n.Do(func() (err error) { there, err = nldev.Open(); return err }); err != nil {
			return err
		}
		defer there.Close()
		conns = append(conns, there)
	}
	for _, c := range conns {
		if err := deleteDevice(ctx, c, name); err != nil {
			return err
		}
	}
	return nil
}

func namespaceOf(s *linux.Scene, node string) (*linux.Namespace, bool) {
	if s == nil {
		return nil, false
	}
	return s.Namespace(node)
}

// deleteDevice deletes a device that a connection sees, and waits.
func deleteDevice(ctx context.Context, c *nldev.Conn, name string) error {
	until := time.Now().Add(deviceGone)
	for asked := false; ; {
		d, ok, err := c.Find(name)
		if err != nil || !ok {
			return err
		}
		if !asked {
			err := c.Delete(d)
			if err != nil && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.EBUSY) {
				return err
			}
			asked = err == nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("RDMA device %s is still there %v after it was deleted: some process has it open", name, deviceGone)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("delete RDMA device %s: %w", name, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}
