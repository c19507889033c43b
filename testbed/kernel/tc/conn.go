//go:build linux

package tc

import (
	"fmt"

	"github.com/rocebed/rocebed/testbed/kernel/nl"
	"golang.org/x/sys/unix"
)

// Conn reads and changes the trees of the devices in one namespace.
type Conn struct{ nl *nl.Conn }

// Open opens a Conn in the calling thread's network namespace.
func Open() (*Conn, error) {
	c, err := nl.Open(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	return &Conn{c}, nil
}

// Close closes the connection.
func (c *Conn) Close() error { return c.nl.Close() }

// Send sends a batch that AppendOp filled.
func (c *Conn) Send(b *nl.Batch) error { return c.nl.Send(b) }

// Trees reads the trees of all devices, by interface index. Devices that have only what the
// kernel gave them by itself have none.
func (c *Conn) Trees() (map[int][]Report, error) {
	trees := map[int][]Report{}
	body := make([]byte, tcmsgLen)
	err := c.nl.Dump(unix.RTM_GETQDISC, body, "read qdiscs", func() { clear(trees) }, func(kind uint16, p []byte) {
		ifindex, r, ok := parse(p, false)
		// Handle 0 is the kernel's own (noqueue, pfifo_fast, an htb class's first leaf).
		// A hook's place is no part of what a device sends by.
		if ok && kind == unix.RTM_NEWQDISC && r.ID != 0 && r.Parent != clsact {
			trees[ifindex] = append(trees[ifindex], r)
		}
	})
	if err != nil {
		return nil, err
	}
	for ifindex, tree := range trees {
		if err := c.classes(ifindex, tree, trees); err != nil {
			return nil, err
		}
	}
	return trees, nil
}

// Tree reads the tree of one device.
func (c *Conn) Tree(ifindex int) ([]Report, error) {
	trees, err := c.Trees()
	return trees[ifindex], err
}

// classes adds the classes of a device to its tree. Only htb's are of interest.
func (c *Conn) classes(ifindex int, tree []Report, trees map[int][]Report) error {
	for _, q := range tree {
		if _, ok := q.Spec.(HTB); !ok {
			continue
		}
		var b nl.Batch
		b.Begin(0, 0, "")
		appendHeader(&b, ifindex, 0, 0)
		var found []Report
		body := b.Bytes()[unix.SizeofNlMsghdr:]
		err := c.nl.Dump(unix.RTM_GETTCLASS, body, fmt.Sprintf("read classes of interface %d", ifindex), func() { found = nil }, func(kind uint16, p []byte) {
			if _, r, ok := parse(p, true); ok && kind == unix.RTM_NEWTCLASS {
				if r.Spec.Kind() == "htb" {
					found = append(found, r)
				}
			}
		})
		if err != nil {
			return err
		}
		trees[ifindex] = append(trees[ifindex], found...)
	}
	return nil
}
