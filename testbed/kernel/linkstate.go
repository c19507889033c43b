//go:build linux

package kernel

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/testbed/kernel/nl"
	"github.com/rocebed/rocebed/testbed/linux"
)

// linkState is what the kernel says of an interface.
type linkState struct {
	carrier     bool
	sends       bool   // its qdisc is at work: the kernel sees to that a moment after the carrier is there
	carrierLost uint32 // how often it was
	stats       linkStats
}

// linkStats begin as struct rtnl_link_stats64 does.
type linkStats struct {
	rxPackets, txPackets, rxBytes, txBytes, rxErrors, txErrors, rxDropped, txDropped uint64
}

// Attributes of include/uapi/linux/if_link.h.
const (
	iflaOperState        = 16
	iflaStats64          = 23
	iflaCarrierDownCount = 48
)

// operUp is IF_OPER_UP (include/uapi/linux/if.h). The kernel says so when it starts the qdisc again
// (linkwatch_do_dev, net/core/link_watch.c).
const operUp = 6

// linkStates reads all interfaces of a namespace, by index.
func linkStates(ns *linux.Namespace) (map[int]linkState, error) {
	var c *nl.Conn
	if err := ns.Do(func() (err error) { c, err = nl.Open(unix.NETLINK_ROUTE); return err }); err != nil {
		return nil, fmt.Errorf("%s: %w", ns.Node(), err)
	}
	defer c.Close()
	states := map[int]linkState{}
	body := make([]byte, unix.SizeofIfInfomsg)
	err := c.Dump(unix.RTM_GETLINK, body, ns.Node()+": read interfaces", func() { clear(states) }, func(_ uint16, p []byte) {
		if len(p) < unix.SizeofIfInfomsg {
			return
		}
		e := binary.NativeEndian
		a := nl.Attrs(p[unix.SizeofIfInfomsg:])
		s := linkState{
			carrier:     e.Uint32(p[8:])&unix.IFF_LOWER_UP != 0,
			sends:       len(a[iflaOperState]) > 0 && a[iflaOperState][0] == operUp,
			carrierLost: nl.U32At(a[iflaCarrierDownCount]),
		}
		if v := a[iflaStats64]; len(v) >= 64 {
			s.stats = linkStats{e.Uint64(v), e.Uint64(v[8:]), e.Uint64(v[16:]), e.Uint64(v[24:]), e.Uint64(v[32:]), e.Uint64(v[40:]), e.Uint64(v[48:]), e.Uint64(v[56:])}
		}
		states[int(int32(e.Uint32(p[4:])))] = s
	})
	return states, err
}

// linkStateOf reads the interface of one port.
func linkStateOf(n *node, port string) (linkState, error) {
	l, ok := n.ns.Link(port)
	if !ok {
		return linkState{}, fmt.Errorf("%s:%s: no such port", n.name, port)
	}
	all, err := linkStates(n.ns)
	s, there := all[l.Index]
	if err == nil && !there {
		err = fmt.Errorf("%s:%s: its interface is gone", n.name, port)
	}
	return s, err
}
