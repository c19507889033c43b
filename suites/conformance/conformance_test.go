//go:build linux

// Package conformance_test proves the libibverbs provider on rxe: whatever any provider of the
// verbs must do (workloads/verbs/conformance), over a fabric that loses packets on demand.
//
//	h1 ── leaf1 ── h2
//	   loss of what h1 sends, while a case asks for it
package conformance_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/testbed/kernel"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads/verbs/conformance"
	"github.com/rocebed/rocebed/workloads/verbs/ibv"
)

func TestMain(m *testing.M) { testleak.Main(m) }

func TestConformance(t *testing.T) {
	bed.SuiteOnRxe(t, "verbs conformance")
	if err := keepPackets(); err != nil {
		t.Error(err)
	}
}

var _ = Describe("the verbs on rxe", func() {
	Context("at wall time", Ordered, ContinueOnFailure, func() {
		suite, w, stop := open(1, topo.IPv4, 0, 1)
		for _, c := range conformance.Cases() {
			It(c.Name, func() { c.Run(GinkgoT(), *suite) })
		}
		It("shows every departure that rxe is known for", func() { conformance.CheckDepartures(GinkgoT(), *suite) })
		itsPackets(w, stop, allOpcodes(roce.TransportRC, roce.TransportUC, roce.TransportUD),
			[]roce.Syndrome{roce.NAK(roce.NAKPSNSequenceError), roce.NAK(roce.NAKInvalidRequest), roce.NAK(roce.NAKRemoteAccessError),
				roce.NAK(roce.NAKRemoteOperationalError), roce.RNRNAK(12)})
	})

	// The device's timers are 16 times longer, and all times as the cases see them the same.
	Context("at dilation 16", Ordered, ContinueOnFailure, func() {
		suite, _, _ := open(16, topo.IPv4, 0, 1)
		for _, c := range conformance.Cases() {
			if c.Timers {
				It(c.Name, func() { c.Run(GinkgoT(), *suite) })
			}
		}
	})

	// rxe hands a packet to its own device over without a network (rxe_net.c rxe_loopback).
	Context("between two openings of one device", Ordered, ContinueOnFailure, func() {
		suite, _, _ := open(1, topo.IPv4, 0, 0)
		for _, c := range conformance.Cases() {
			if c.Network {
				It(c.Name, func() { c.Run(GinkgoT(), *suite) })
			}
		}
	})

	Context("over IPv6", Ordered, ContinueOnFailure, func() {
		suite, w, stop := open(1, topo.IPv6, 0, 1)
		for _, c := range conformance.Cases() {
			if c.Network {
				It(c.Name, func() { c.Run(GinkgoT(), *suite) })
			}
		}
		itsPackets(w, stop, allOpcodes(roce.TransportUC, roce.TransportUD), nil)
	})
})

// open has the container it is called in open the provider on two hosts before its first spec.
// What passes between them is watched, on the wire w, until stop is called.
func open(d loop.Dilation, addresses topo.Family, a, b int) (suite **conformance.Suite, w **wire, stop *func() error) {
	suite, w, stop = new(*conformance.Suite), new(*wire), new(func() error)
	BeforeAll(func(ctx SpecContext) {
		f := build(ctx, d, addresses)
		var err error
		*w, *stop, err = watch(context.WithoutCancel(ctx), f)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() error { return (*stop)() })
		*suite, err = conformance.Open(rxe(f, a, b))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup((*suite).Close)
	}, NodeTimeout(time.Minute))
	return suite, w, stop
}

// build brings the fabric up for the suite's time.
func build(ctx context.Context, d loop.Dilation, addresses topo.Family) *kernel.Fabric {
	GinkgoHelper()
	f, err := newFabric(ctx, d, addresses)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(f.Close, NodeTimeout(time.Minute))
	return f
}

// newFabric brings the fabric up; its links are faster than any machine's guest.
func newFabric(ctx context.Context, d loop.Dilation, addresses topo.Family) (*kernel.Fabric, error) {
	delay := time.Duration(0)
	spec := topo.Spec{Star: &topo.Star{Hosts: 2}, Addresses: addresses, LinkSettings: topo.LinkSettings{Rate: 10 * topo.Gbps * topo.Rate(d.Factor()), Delay: &delay}}
	top, err := spec.Build()
	if err != nil {
		return nil, err
	}
	plan, err := top.Plan(spec.PlanOptions())
	if err != nil {
		return nil, err
	}
	bed, err := linux.Acquire(ctx, "conformance")
	if err != nil {
		return nil, err
	}
	return kernel.Build(ctx, kernel.Config{Testbed: bed, Plan: plan, Dilation: d})
}

// rxe is the provider under proof, on two of a fabric's hosts.
func rxe(f *kernel.Fabric, a, b int) conformance.Provider {
	return conformance.Provider{
		Name: "ibv on rxe",
		Open: func(i int) (conformance.Endpoint, error) {
			host := f.Hosts()[[]int{a, b}[i]]
			nic := host.NICs()[0]
			d, err := ibv.Open(host.Loop(), f.DeviceName(nic.Port), ibv.Options{Dilation: f.Dilation()})
			return conformance.Endpoint{Device: d, GIDIndex: nic.GIDIndex, GID: nic.GID, Departures: conformance.Rxe}, err
		},
		Wait: func(done <-chan struct{}) error {
			select {
			case <-done:
				return nil
			case <-time.After(bed.Patience):
				return fmt.Errorf("nothing for %v", bed.Patience)
			}
		},
		Lose: func(fraction float64) (func() error, error) { return bed.Lose(f, f.Hosts()[0].Name(), fraction) },
	}
}
