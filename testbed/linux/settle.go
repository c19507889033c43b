//go:build linux

package linux

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/topo"
)

// settle waits until the kernel has done what it does in the background after links were set up
// and addresses added. What is sent before is dropped.
func (w *Wiring) settle(ctx context.Context) error {
	until := time.Now().Add(10 * time.Second)
	return each(ctx, len(w.order), func(i int) error {
		n := w.order[i]
		for {
			missing, err := w.missing(n)
			if err != nil {
				return err
			}
			if missing == "" {
				return nil
			}
			if time.Now().After(until) {
				return errors.New(missing)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(2 * time.Millisecond):
			}
		}
	})
}

// missing names one thing that the node still lacks, or none.
func (w *Wiring) missing(n *Namespace) (string, error) {
	missing, err := n.notRunning()
	if err != nil || missing != "" || w.plan.Options.Family != topo.IPv6 || w.isBare(w.plan.Node(n.node)) {
		return missing, err
	}
	return n.notLocal(w.plan.Ports(n.node))
}

// notRunning names a port whose link does not carry yet. The kernel's link watch runs a while
// after the second end of a link was set up; asking for a link runs it for that link (since
// Linux 6.8).
func (n *Namespace) notRunning() (missing string, err error) {
	const running = unix.IFF_UP | unix.IFF_RUNNING | unix.IFF_LOWER_UP
	var b batch
	for _, l := range n.links {
		b.begin(unix.RTM_GETLINK, 0, func() string { return n.node + ":" + l.Port + ": read link" })
		b.link(l.Index, 0, 0)
		b.attrU32(unix.IFLA_EXT_MASK, 1<<3) // RTEXT_FILTER_SKIP_STATS
		b.end()
	}
	up := 0
	err = n.route.query(&b, func(kind uint16, body []byte) {
		if kind == unix.RTM_NEWLINK && len(body) >= unix.SizeofIfInfomsg {
			if i := n.byIndex(int(native.Uint32(body[4:]))); i >= 0 {
				if native.Uint32(body[8:])&running == running {
					up++
				} else {
					missing = n.node + ":" + n.links[i].Port + ": the link does not come up"
				}
			}
		}
	})
	if err == nil && missing == "" && up < len(n.links) {
		err = fmt.Errorf("%s: the kernel told of %d links, expected %d", n.node, up, len(n.links))
	}
	return missing, err
}

// notLocal says whether the node doesn't take its IPv6 addresses for its own yet: even without
// duplicate address detection the kernel adds the local route from a work queue
// (addrconf_dad_start, net/ipv6/addrconf.c).
func (n *Namespace) notLocal(ports []topo.PlanPort) (missing string, err error) {
	var b batch
	for i := range ports {
		p := &ports[i]
		b.begin(unix.RTM_GETROUTE, 0, func() string { return fmt.Sprintf("%s: look up %s", p.Ref, p.Addr.Addr()) })
		b.u8(unix.AF_INET6)
		b.u8(128)
		b.buf = append(b.buf, 0, 0, 0, 0, 0, 0)
		b.u32(0)
		b.attrAddr(unix.RTA_DST, p.Addr.Addr())
		b.end()
	}
	local := 0
	err = n.route.query(&b, func(kind uint16, body []byte) {
		if kind == unix.RTM_NEWROUTE && len(body) >= unix.SizeofRtMsg && body[7] == unix.RTN_LOCAL {
			local++
		}
	})
	if err == nil && local < len(ports) {
		missing = fmt.Sprintf("%s: %d of %d addresses are not local yet", n.node, len(ports)-local, len(ports))
	}
	return missing, err
}
