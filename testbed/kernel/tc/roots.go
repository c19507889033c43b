//go:build linux

package tc

import "golang.org/x/sys/unix"

// Roots reads the counters of the qdisc at the root of every device, by interface index, in one dump. Devices
// that have only what the kernel gave them by itself have none. It costs a fraction of Trees: what is
// watched many times a second is read by it.
func (c *Conn) Roots() (map[int]Stats, error) {
	roots := map[int]Stats{}
	err := c.nl.Dump(unix.RTM_GETQDISC, make([]byte, tcmsgLen), "read root qdiscs", func() { clear(roots) }, func(kind uint16, p []byte) {
		if kind != unix.RTM_NEWQDISC || len(p) < tcmsgLen {
			return
		}
		if _, id, parent := header(p); parent != Root || id == 0 {
			return
		}
		if ifindex, r, ok := parse(p, false); ok {
			roots[ifindex] = r.Stats
		}
	})
	return roots, err
}
