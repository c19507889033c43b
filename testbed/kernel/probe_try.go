//go:build linux

package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/testbed/kernel/cable"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/testbed/kernel/nl"
	"github.com/rocebed/rocebed/testbed/kernel/nldev"
	"github.com/rocebed/rocebed/testbed/kernel/tc"
	"github.com/rocebed/rocebed/topo"
)

// scratch is a connection in a scratch namespace with a veth pair.
type scratch struct {
	conn *nl.Conn
	tc   *tc.Conn
}

// The pair's indices and names; the namespace is our own, so they are free.
const (
	scratchA, scratchB = 11, 12
	scratchNameA       = "rb0"
	scratchNameB       = "rb1"
)

const (
	vethInfoPeer = 1 // linux/veth.h
	scratchMTU   = 4200
)

func newScratch() (*scratch, error) {
	conn, err := nl.Open(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	s := &scratch{conn: conn}
	if s.tc, err = tc.Open(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	var b nl.Batch
	link := func(index uint32, flags uint32) {
		b.Zero(4)
		b.U32(index)
		b.U32(flags)
		b.U32(flags)
	}
	b.Begin(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, "make a veth pair")
	link(scratchA, 0)
	b.AttrString(unix.IFLA_IFNAME, scratchNameA)
	b.AttrU32(unix.IFLA_MTU, scratchMTU)
	b.Nest(unix.IFLA_LINKINFO, func() {
		b.AttrString(unix.IFLA_INFO_KIND, "veth")
		b.Nest(unix.IFLA_INFO_DATA, func() {
			b.Nest(vethInfoPeer, func() {
				link(scratchB, 0)
				b.AttrString(unix.IFLA_IFNAME, scratchNameB)
				b.AttrU32(unix.IFLA_MTU, scratchMTU)
			})
		})
	})
	b.End()
	for _, index := range []uint32{scratchA, scratchB} {
		b.Begin(unix.RTM_SETLINK, 0, "set a veth up")
		link(index, unix.IFF_UP)
		b.End()
	}
	// rxe takes its addresses from its interface; 198.18.0.0/15 is for testing (RFC 2544).
	b.Begin(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, "add an address")
	b.U8(unix.AF_INET)
	b.U8(31)
	b.U8(0)
	b.U8(0)
	b.U32(scratchA)
	b.Attr(unix.IFA_LOCAL, []byte{198, 18, 0, 0})
	b.End()
	if err := conn.Send(&b); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// close takes the pair away, and with it whatever was tried on it.
func (s *scratch) close() error {
	var b nl.Batch
	b.Begin(unix.RTM_DELLINK, 0, "delete the veth pair")
	b.Zero(4)
	b.U32(scratchA)
	b.U32(0)
	b.U32(0)
	b.End()
	return errors.Join(s.conn.Send(&b, unix.ENODEV), s.tc.Close(), s.conn.Close())
}

// bare is a qdisc without parameters. The kernel answers ENOENT where it has no such kind; what
// it says of missing parameters doesn't matter.
func tryQdisc(kind string) func(*scratch) error {
	return func(s *scratch) error {
		var b nl.Batch
		b.Begin(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_EXCL, "add qdisc "+kind)
		b.Zero(4)
		b.U32(scratchA)
		b.U32(1 << 16)
		b.U32(tc.Root)
		b.U32(0)
		b.AttrString(1, kind)
		b.End()
		return s.conn.Send(&b, unix.EINVAL)
	}
}

// tryTree makes a switch port's tree with a marker and reads it back.
func tryTree(s *scratch) error {
	p := tc.Port{Rate: 100 * topo.Mbps, MTU: scratchMTU, Priorities: []tc.Priority{{Limit: 1 << 20, Marker: &tc.Marker{Kmin: 20000, Kmax: 60000, Pmax: 0.1}}}}
	var b nl.Batch
	for _, op := range tc.Diff(nil, p.Tree()) {
		tc.AppendOp(&b, scratchA, op, "scratch")
	}
	if err := s.tc.Send(&b); err != nil {
		return err
	}
	have, err := s.tc.Tree(scratchA)
	if err != nil {
		return err
	}
	return tc.Verify(have, p.Tree())
}

// tryCable loads a program with everything that stages use and attaches it.
func tryCable(*scratch) error { return cable.Try(scratchA, scratchB) }

func tryECMP(s *scratch) error {
	if err := trySetting("ipv4/fib_multipath_hash_policy")(s); err != nil {
		return err
	}
	return trySetting("ipv4/fib_multipath_hash_seed")(s)
}

// trySetting looks for a setting of the network namespace.
func trySetting(key string) func(*scratch) error {
	return func(*scratch) error {
		_, err := os.Stat("/proc/sys/net/" + key)
		return err
	}
}

func tryNLDev(*scratch) error {
	c, err := nldev.Open()
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Devices()
	return err
}

// tryRxe makes an rxe device in the namespace, finds its port active, and deletes it.
func tryRxe(*scratch) (err error) {
	c, err := nldev.Open()
	if err != nil {
		return err
	}
	defer c.Close()
	name := fmt.Sprintf("rb-probe%d", os.Getpid())
	if err := c.AddRxe(name, scratchNameA); err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
			err = fmt.Errorf("%w (no rdma_rxe, or one that works in the initial namespace alone: before Linux 7.1)", err)
		}
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), deviceGone)
	defer cancel()
	shared, err := c.Shared()
	if err != nil || shared {
		return errors.Join(err, deleteDevice(ctx, c, name))
	}
	// In exclusive mode it appears in the initial namespace: where new goroutines run, and this
	// thread doesn't.
	gone := make(chan error, 1)
	go func() { gone <- removeDevice(ctx, nil, name, "") }()
	return <-gone
}

func tryUverbs(*scratch) error {
	if _, err := os.Stat("/sys/class/infiniband_verbs/abi_version"); err != nil {
		return errors.New("ib_uverbs is not loaded")
	}
	return nil
}

func tryMode(*scratch) error {
	c, err := nldev.Open()
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Shared()
	return err
}

// tryBPFQdisc opens a port engine.
func tryBPFQdisc(*scratch) error {
	e, err := engine.Open(engine.Config{Testbed: fmt.Sprint("probe", os.Getpid()), Ports: 1, Nodes: 1, Slots: 1})
	if err != nil {
		return err
	}
	return e.Close()
}

func tryBTF(*scratch) error {
	_, err := btf.LoadKernelSpec()
	return err
}
