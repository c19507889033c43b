//go:build linux

package kernel

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

var _ fabric.Addresser = (*Fabric)(nil)

// AddAddress implements fabric.Addresser. The address has no route, and is not announced.
func (f *Fabric) AddAddress(port topo.PortRef, addr netip.Addr) error {
	return f.changeAddress(port, addr, "add", (*netlink.Handle).AddrAdd, unix.EEXIST)
}

// RemoveAddress implements fabric.Addresser.
func (f *Fabric) RemoveAddress(port topo.PortRef, addr netip.Addr) error {
	return f.changeAddress(port, addr, "remove", (*netlink.Handle).AddrDel, unix.EADDRNOTAVAIL)
}

// changeAddress changes a port's addresses. That it is so already is no error.
func (f *Fabric) changeAddress(port topo.PortRef, addr netip.Addr, what string, do func(*netlink.Handle, netlink.Link, *netlink.Addr) error, already error) error {
	h, err := f.halting(port.Node)
	if err != nil {
		return err
	}
	handle, err := h.ns.Handle()
	if err != nil {
		return err
	}
	own, ok := h.ns.Link(port.Port)
	if !ok {
		return fmt.Errorf("%s: there is no such port", port)
	}
	l, err := handle.LinkByIndex(own.Index)
	if err != nil {
		return fmt.Errorf("%s: %w", port, err)
	}
	a := &netlink.Addr{IPNet: &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(addr.BitLen(), addr.BitLen())}}
	if addr.Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	if err := do(handle, l, a); err != nil && !errors.Is(err, already) {
		return fmt.Errorf("%s: %s address %v: %w", port, what, addr, err)
	}
	return nil
}
