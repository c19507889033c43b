//go:build linux

package linux

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Namespace is a node's network namespace with the links in it.
type Namespace struct {
	node   string
	name   string // under /run/netns
	fd     int
	inode  uint64
	cookie uint64
	home   home
	route  *routeSocket

	mu     sync.Mutex
	handle *netlink.Handle

	links  []Link
	byPort map[string]int
}

// Link is a port's network interface.
type Link struct {
	Port  string // the port's name in the topology
	Name  string // the interface's name; differs from Port where that is too long
	Index int    // the interface's index, unique among the testbed's
}

// Node is the topology's name for the node.
func (n *Namespace) Node() string { return n.node }

// Name is what 'ip netns' calls the namespace.
func (n *Namespace) Name() string { return n.name }

// Path is where the namespace is bound.
func (n *Namespace) Path() string { return namespacePath(n.name) }

// FD is the namespace's descriptor. It belongs to the Namespace; don't close it.
func (n *Namespace) FD() int { return n.fd }

// Cookie is the kernel's identity of the namespace, the same that bpf_get_netns_cookie returns.
func (n *Namespace) Cookie() uint64 { return n.cookie }

// Links lists the interfaces in port order.
func (n *Namespace) Links() []Link { return n.links }

// Link is the interface of a port.
func (n *Namespace) Link(port string) (Link, bool) {
	i, ok := n.byPort[port]
	if !ok {
		return Link{}, false
	}
	return n.links[i], true
}

// Do runs fn in the namespace, on an operating system thread of its own, and waits for it. Sockets
// and files that fn opens stay the namespace's; goroutines that fn starts run outside. A panic or
// a failed assertion in fn surfaces in the caller.
func (n *Namespace) Do(fn func() error) error {
	return n.home.away(func() error {
		if err := unix.Setns(n.fd, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("%s: enter network namespace: %w", n.node, err)
		}
		return fn()
	})
}

// Handle is a netlink handle (NETLINK_ROUTE) that acts in the namespace from any thread. It
// belongs to the Namespace; don't close it. Dumps can be interrupted: use [Dump].
func (n *Namespace) Handle() (*netlink.Handle, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.handle != nil {
		return n.handle, nil
	}
	err := n.Do(func() (err error) {
		n.handle, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: open netlink handle: %w", n.node, err)
	}
	return n.handle, nil
}

// Dump repeats a netlink dump that the kernel says was interrupted by a change, up to ten times.
func Dump[T any](dump func() (T, error)) (T, error) {
	for try := 1; ; try++ {
		v, err := dump()
		if try == 10 || !errors.Is(err, netlink.ErrDumpInterrupted) {
			return v, err
		}
	}
}

func (n *Namespace) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.handle != nil {
		n.handle.Close()
		n.handle = nil
	}
	if n.route != nil {
		n.route.close()
	}
	if n.fd >= 0 {
		unix.Close(n.fd)
		n.fd = -1
	}
}

// newNamespace makes a namespace and leaves the calling thread in it. It has no name yet, so
// that it vanishes by itself if this process dies before it is noted in the journal.
func newNamespace(home home, testbed, node string) (_ *Namespace, err error) {
	n := &Namespace{node: node, name: NamespaceName(testbed, node), home: home, fd: -1}
	defer func() {
		if err != nil {
			n.close()
			err = fmt.Errorf("%s: make network namespace: %w", node, err)
		}
	}()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	if n.fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(n.fd, &st); err != nil {
		return nil, err
	}
	n.inode = st.Ino
	if n.route, err = openRouteSocket(); err != nil {
		return nil, err
	}
	if n.cookie, err = n.route.cookie(); err != nil {
		return nil, err
	}
	return n, nil
}

func (n *Namespace) entry() Entry {
	return Entry{Kind: KindNamespace, ID: []string{n.name, strconv.FormatUint(n.inode, 10), strconv.FormatUint(n.cookie, 10), n.node}}
}
