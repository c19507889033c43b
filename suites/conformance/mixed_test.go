//go:build linux

package conformance_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/testbed/kernel"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/soft"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads/verbs/conformance"
)

// The software RNIC on the wire against the kernel's: the same cases with one end of each make, both ways round.
//
//	h1 ── leaf1 ── h2
//	soft-host and rxe-host, or the other way round; leaf1 is a linux-switch
var _ = Describe("the verbs between a software RNIC and rxe", func() {
	for _, c := range []struct {
		text      string
		kinds     [2]topo.Kind
		addresses topo.Family
		all       bool
	}{
		{"from the software RNIC to rxe", [2]topo.Kind{topo.SoftHost, topo.RxeHost}, topo.IPv4, true},
		{"from rxe to the software RNIC", [2]topo.Kind{topo.RxeHost, topo.SoftHost}, topo.IPv4, true},
		{"from the software RNIC to rxe over IPv6", [2]topo.Kind{topo.SoftHost, topo.RxeHost}, topo.IPv6, false},
	} {
		Context(c.text, Ordered, ContinueOnFailure, func() {
			suite := new(*conformance.Suite)
			BeforeAll(func(ctx SpecContext) {
				f, err := mixedFabric(ctx, c.kinds, c.addresses)
				Expect(err).NotTo(HaveOccurred())
				DeferCleanup(f.Close, NodeTimeout(time.Minute))
				*suite, err = conformance.Open(mixed(f))
				Expect(err).NotTo(HaveOccurred())
				DeferCleanup((*suite).Close)
			}, NodeTimeout(time.Minute))
			for _, one := range conformance.Cases() {
				if c.all || one.Network {
					It(one.Name, func() { one.Run(GinkgoT(), *suite) })
				}
			}
		})
	}
})

// mixedFabric is the suite's fabric with hosts of two kinds.
func mixedFabric(ctx context.Context, kinds [2]topo.Kind, addresses topo.Family) (*kernel.Fabric, error) {
	delay := time.Duration(0)
	spec := topo.Spec{Star: &topo.Star{Hosts: 2}, Addresses: addresses, LinkSettings: topo.LinkSettings{Rate: 10 * topo.Gbps, Delay: &delay}}
	top, err := spec.Build()
	if err != nil {
		return nil, err
	}
	for i := range top.Nodes {
		switch top.Nodes[i].Name {
		case "h1":
			top.Nodes[i].Kind = kinds[0]
		case "h2":
			top.Nodes[i].Kind = kinds[1]
		}
	}
	plan, err := top.Plan(spec.PlanOptions())
	if err != nil {
		return nil, err
	}
	bed, err := linux.Acquire(ctx, "conformance")
	if err != nil {
		return nil, err
	}
	return kernel.Build(ctx, kernel.Config{
		Testbed: bed, Plan: plan, Dilation: 1,
		SoftHost: func(ctx context.Context, n *topo.Node, ns *linux.Namespace, epoch time.Time) (kernel.SoftHost, error) {
			return soft.NewSingle(ctx, soft.Config{Plan: plan, Dilation: 1, Seed: 1}, n, ns, epoch, func(node string) topo.Kind { return plan.Node(node).Kind })
		},
	})
}

// mixed is the provider with an end of each make.
func mixed(f *kernel.Fabric) conformance.Provider {
	p := rxe(f, 0, 1)
	p.Name = "software RNIC and rxe"
	ofRxe := p.Open
	opened := map[int]bool{}
	p.Open = func(i int) (conformance.Endpoint, error) {
		host := f.Hosts()[i]
		if host.Kind() == topo.RxeHost {
			return ofRxe(i)
		}
		nic := host.NICs()[0]
		end := conformance.Endpoint{Device: nic.Device, GIDIndex: nic.GIDIndex, GID: nic.GID}
		if !opened[i] {
			opened[i] = true
			return end, nil
		}
		// A software RNIC isn't opened twice: a second one stands for it, which no case sends by.
		spare, err := rnic.New(rnic.Config{
			Name: host.Name() + ":spare", Loop: host.Loop(), Addr: roce.AddrFrom(nic.GID), MTU: 4200, Rate: 1e9, Profile: rnic.Default(),
			Frames: &link.Pool{}, Wire: nowhere{}, Resolve: func(roce.Addr) (rnic.Neighbor, bool) { return rnic.Neighbor{}, false },
		})
		end.Device = spare
		return end, err
	}
	return p
}

// nowhere is a wire that leads there.
type nowhere struct{}

func (nowhere) Send(*link.Frame, loop.Time) { panic("the spare device sends") }
