//go:build linux

package linux

import (
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Request is a netlink request with the words for an error about it, such as
// "eth3: add qdisc htb".
type Request struct {
	*nl.NetlinkRequest
	Label string
}

// Send hands requests to the namespace's rtnetlink in as few system calls as fit, in order. It
// is how many qdiscs are added quickly; requests that are answered with data don't belong here.
// When one fails, its error is returned, with its label and the kernel's explanation; the others
// were tried nevertheless, up to the next few dozen.
func (n *Namespace) Send(reqs ...Request) error {
	var b batch
	for _, r := range reqs {
		raw := r.Serialize()
		if len(raw) < unix.SizeofNlMsghdr {
			return fmt.Errorf("%s:%s: request of %d bytes", n.node, r.Label, len(raw))
		}
		b.begin(native.Uint16(raw[4:]), native.Uint16(raw[6:])&^unix.NLM_F_ACK, func() string { return n.node + ":" + r.Label })
		b.buf = append(b.buf, raw[unix.SizeofNlMsghdr:]...)
		b.end()
	}
	return n.route.send(&b)
}
