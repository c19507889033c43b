//go:build linux

package linux

import (
	"context"
	"fmt"
	"testing"

	"github.com/rocebed/rocebed/topo"
)

// host1 ═ cable ═ leaf1 ═ cable ═ spine1 …
func TestPortsCarryExactlyWhileTheirCableIsWhole(t *testing.T) {
	ctx := context.Background()
	bed := acquire(t, testName("cables"))
	w, err := bed.Wire(ctx, spineLeaf(t, 1, 2, 1), WireOptions{Cables: true})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(when string, carries func(topo.PortRef) bool) {
		t.Helper()
		for _, n := range w.Namespaces() {
			for _, l := range n.Links() {
				ref := topo.PortRef{Node: n.Node(), Port: l.Port}
				eventually(t, fmt.Sprintf("%s: carrier of %s being %v", when, ref, carries(ref)), func() (bool, string) {
					var got bool
					h, err := n.Handle()
					if err == nil {
						link, lerr := h.LinkByIndex(l.Index)
						if err = lerr; err == nil {
							got = link.Attrs().RawFlags&0x10000 != 0 // IFF_LOWER_UP
						}
					}
					return err == nil && got == carries(ref), fmt.Sprintf("%v, %v", got, err)
				})
			}
		}
	}
	expect("before they are connected", func(topo.PortRef) bool { return false })
	if err := w.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	expect("connected", func(topo.PortRef) bool { return true })

	link := w.Plan().Topology.Links[0]
	routes := func() string {
		n := w.Node(link.A.Node)
		h, err := n.Handle()
		if err != nil {
			t.Fatal(err)
		}
		all, err := Dump(func() (string, error) {
			rs, err := h.RouteList(nil, 2)
			out := ""
			for _, r := range rs {
				r.Flags = 0
				for _, hop := range r.MultiPath {
					hop.Flags = 0
				}
				out += r.String() + "\n"
			}
			return out, err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := routes()
	if err := w.SetCable(link.A, false); err != nil {
		t.Fatal(err)
	}
	expect("one cut", func(r topo.PortRef) bool { return r != link.A && r != link.B })
	if got := routes(); got != before {
		t.Errorf("cutting a cable changed the routes from\n%sto\n%s", before, got)
	}
	if err := w.SetCable(link.A, true); err != nil {
		t.Fatal(err)
	}
	expect("mended", func(topo.PortRef) bool { return true })
	if err := w.SetCable(topo.PortRef{Node: "nowhere", Port: "eth0"}, false); err == nil {
		t.Error("a cable that doesn't exist was cut")
	}
}
