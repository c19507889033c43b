//go:build linux

// Package mixed_test holds the software RNIC against the kernel's on the wire: whatever any provider of the verbs must do
// (workloads/verbs/conformance), between a soft-host and an rxe-host, each as requester and as responder.
//
//	h1 (soft-host) ── leaf1 ── h2 (rxe-host)
//
// The cables lose packets while a case asks for it; they are the kernel backend's for both.
package mixed_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/mixed"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads/verbs"
	"github.com/rocebed/rocebed/workloads/verbs/conformance"
	"github.com/rocebed/rocebed/workloads/verbs/ibv"
)

func TestMain(m *testing.M) { testleak.Main(m) }

func TestMixed(t *testing.T) { bed.SuiteOnRxe(t, "soft-hosts and rxe-hosts in one fabric") }

var _ = Describe("a soft-host and an rxe-host", func() {
	var suites []*conformance.Suite // of all contexts

	Context("on a linux-switch", Ordered, ContinueOnFailure, func() {
		f := fabricOf(topo.LinuxSwitch, topo.IPv4)
		var from [2]*sent
		var stop [2]func() error
		BeforeAll(func(ctx SpecContext) {
			for i, host := range orders[0] {
				from[i], stop[i] = watch(ctx, *f, host)
			}
		})
		for _, order := range orders {
			Context(order[0]+" to "+order[1], func() {
				suite := open(f, order, &suites)
				itConforms(suite, order, func(conformance.Case) bool { return true })
			})
		}
		It("write the same headers", func() {
			for i := range from {
				Expect(stop[i]()).To(Succeed())
				Expect(from[i].problems).To(BeEmpty())
			}
			Expect(only(from[0], from[1])).To(BeEmpty(), "what the soft-host alone sends; the rxe-host alone sends\n%s", strings.Join(only(from[1], from[0]), "\n"))
			Expect(only(from[1], from[0])).To(BeEmpty(), "what the rxe-host alone sends")
		})
		It("show every departure that rxe is known for", func() { conformance.CheckDepartures(GinkgoT(), suites...) })
	})

	Context("on a linux-switch over IPv6", Ordered, ContinueOnFailure, func() {
		f := fabricOf(topo.LinuxSwitch, topo.IPv6)
		for _, order := range orders {
			Context(order[0]+" to "+order[1], func() {
				suite := open(f, order, &suites)
				itConforms(suite, order, func(c conformance.Case) bool { return c.Network })
			})
		}
	})

	Context("on a soft-switch", Ordered, ContinueOnFailure, func() {
		f := fabricOf(topo.SoftSwitch, topo.IPv4)
		for _, order := range orders {
			Context(order[0]+" to "+order[1], func() {
				suite := open(f, order, &suites)
				itConforms(suite, order, func(c conformance.Case) bool { return c.Network })
			})
		}
	})
})

// orders are who is host 0 of the cases, and who host 1.
var orders = [][2]string{{"h1", "h2"}, {"h2", "h1"}}

// itConforms makes specs of the cases that are chosen.
func itConforms(suite **conformance.Suite, order [2]string, chosen func(conformance.Case) bool) {
	for _, c := range conformance.Cases() {
		if !chosen(c) || c.Reopens && order[1] == "h1" {
			continue // a soft-host's NIC is one device, which its fabric opens and closes
		}
		It(c.Name, func() { c.Run(GinkgoT(), *suite) })
	}
}

// fabricOf has the container it is called in bring up two hosts on a switch before its first spec.
func fabricOf(sw topo.Kind, addresses topo.Family) **mixed.Fabric {
	f := new(*mixed.Fabric)
	BeforeAll(func(ctx SpecContext) { *f = build(ctx, sw, addresses) }, NodeTimeout(time.Minute))
	return f
}

// open has the container it is called in open two hosts' devices before its first spec.
func open(f **mixed.Fabric, order [2]string, all *[]*conformance.Suite) (suite **conformance.Suite) {
	suite = new(*conformance.Suite)
	BeforeAll(func() {
		var err error
		*suite, err = conformance.Open(provider(*f, order))
		Expect(err).NotTo(HaveOccurred())
		*all = append(*all, *suite)
		DeferCleanup((*suite).Close)
	})
	return suite
}

// build brings up two hosts on a switch of a kind, the first of them a soft-host.
func build(ctx context.Context, sw topo.Kind, addresses topo.Family) *mixed.Fabric {
	GinkgoHelper()
	delay := time.Duration(0)
	spec := topo.Spec{Star: &topo.Star{Hosts: 2}, Addresses: addresses, LinkSettings: topo.LinkSettings{Rate: 10 * topo.Gbps, Delay: &delay}}
	top, err := spec.Build()
	Expect(err).NotTo(HaveOccurred())
	for i := range top.Nodes {
		switch n := &top.Nodes[i]; n.Name {
		case "h1":
			n.Kind = topo.SoftHost
		case "leaf1":
			n.Kind = sw
		}
	}
	plan, err := top.Plan(spec.PlanOptions())
	Expect(err).NotTo(HaveOccurred())
	bed, err := linux.Acquire(ctx, "mixed")
	Expect(err).NotTo(HaveOccurred())
	f, err := mixed.Build(ctx, mixed.Config{Testbed: bed, Plan: plan, Dilation: 1, Seed: 1})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(f.Close, NodeTimeout(time.Minute))
	return f
}

// provider is both devices, host 0's and host 1's in an order.
func provider(f *mixed.Fabric, order [2]string) conformance.Provider {
	return conformance.Provider{
		Name: order[0] + " to " + order[1],
		Open: func(i int) (conformance.Endpoint, error) {
			host := f.Host(order[i])
			nic := host.NICs()[0]
			e := conformance.Endpoint{Device: kept{nic.Device}, GIDIndex: nic.GIDIndex, GID: nic.GID}
			if host.Kind() == topo.SoftHost {
				return e, nil
			}
			var err error
			e.Device, err = ibv.Open(host.Loop(), f.DeviceName(nic.Port), ibv.Options{Dilation: f.Dilation()})
			e.Departures = conformance.Rxe
			return e, err
		},
		Wait: func(done <-chan struct{}) error {
			select {
			case <-done:
				return nil
			case <-time.After(bed.Patience):
				return fmt.Errorf("nothing for %v", bed.Patience)
			}
		},
		Lose: func(fraction float64) (func() error, error) { return bed.Lose(f, order[0], fraction) },
	}
}

// kept is the fabric's own device, which it closes itself.
type kept struct{ verbs.Device }

func (kept) Close(done func(error)) { done(nil) }
