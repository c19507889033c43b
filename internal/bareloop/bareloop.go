//go:build linux

// Package bareloop is what bring-up is measured against: the netlink loop that one writes first.
// For benchmarks only.
package bareloop

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/topo"
)

// Run makes named namespaces for the plan's nodes and veths between them for its links, one request
// at a time, and nothing else: no addresses, routes, settings. It returns how long that took. What
// it made is removed afterwards, uncounted.
func Run(b *testing.B, p *topo.Plan) time.Duration {
	b.Helper()
	Quiesce()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := netns.Get()
	if err != nil {
		b.Fatal(err)
	}
	defer home.Close()
	name := func(node string) string { return fmt.Sprintf("bare%d-%s", os.Getpid(), node) }
	spaces := map[string]netns.NsHandle{}
	defer func() {
		_ = netns.Set(home)
		for node, h := range spaces {
			h.Close()
			_ = netns.DeleteNamed(name(node))
		}
		_ = unix.Unmount("/run/netns", 0)
	}()

	start := time.Now()
	for _, n := range p.Topology.Nodes {
		if spaces[n.Name], err = netns.NewNamed(name(n.Name)); err != nil {
			b.Fatal(err)
		}
	}
	if err := netns.Set(home); err != nil {
		b.Fatal(err)
	}
	for _, l := range p.Topology.Links {
		h, err := netlink.NewHandleAt(spaces[l.A.Node], unix.NETLINK_ROUTE)
		if err != nil {
			b.Fatal(err)
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name = l.A.Port
		err = h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: l.B.Port, PeerNamespace: netlink.NsFd(spaces[l.B.Node])})
		h.Close()
		if err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start)
}

// Quiesce leaves the kernel time to take back the last round's namespaces, which it does in the
// background on the processors that are measured.
func Quiesce() { <-time.After(300 * time.Millisecond) }

// Median is the middle one.
func Median(ds []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(ds))
	return s[len(s)/2]
}
