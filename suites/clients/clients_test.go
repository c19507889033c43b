//go:build linux

// Package clients_test runs real RDMA programs on hosts of a fabric with exec: perftest, rping
// and libibverbs' ping-pong know nothing of rocebed, and must work as on any machine.
//
//	h1 ── leaf1 ──────────── leaf2 ── h2
//	server                            client
package clients_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/suites/cli"
)

func TestMain(m *testing.M) { testleak.Main(m) }

func TestClients(t *testing.T) { bed.SuiteOnRxe(t, "real clients") }

const scenario = `apiVersion: rocebed/v1
name: clients
dilation: 64
topology:
  dumbbell: {left: 1, right: 1}
  rate: 4Gbps
`

const testbed = "clients"

// nic is what programs are told of a host's NIC.
type nic struct{ device, gid, addr string }

// status is the part of `rocebed status --json` that this suite reads.
type status struct {
	Nodes []struct {
		Name  string `json:"name"`
		Ports []struct {
			Addr     string `json:"addr"`
			RDMA     string `json:"rdma"`
			GIDIndex int    `json:"gid_index"`
		} `json:"ports"`
	} `json:"nodes"`
}

var _ = Describe("a real RDMA program", Ordered, func() {
	var (
		m    *cli.Machine
		nics = map[string]nic{}
	)
	BeforeAll(func(ctx SpecContext) {
		m = cli.NewMachine()
		m.File("spec.yaml", scenario)
		m.MustRun(ctx, "up", "--name", testbed, "spec.yaml")
		var s status
		m.JSON(ctx, &s, "status", "--json", testbed)
		for _, n := range s.Nodes {
			for _, p := range n.Ports {
				if p.RDMA != "" {
					nics[n.Name] = nic{p.RDMA, fmt.Sprint(p.GIDIndex), host(p.Addr)}
				}
			}
		}
		Expect(nics).To(And(HaveKey("h1"), HaveKey("h2")))
	}, NodeTimeout(time.Minute))

	AfterAll(func(ctx SpecContext) {
		m.MustRun(ctx, "down", testbed)
		Eventually(m.Left).WithTimeout(15 * time.Second).Should(BeEmpty())
	}, NodeTimeout(time.Minute))

	DescribeTable("passes between two hosts",
		func(ctx SpecContext, server, client func(h1, h2 nic) []string) {
			exec := func(host string, argv []string) []string {
				return append([]string{"exec", "--name", testbed, host, "--"}, argv...)
			}
			listening := m.Start(ctx, exec("h1", server(nics["h1"], nics["h2"]))...)
			// Some of these tell nobody when they listen: the client tries until one does.
			Eventually(func(g Gomega) {
				g.Expect(listening.Ended()).To(BeFalse(), "the server ended: %q", listening.Lines())
				d := m.Run(ctx, exec("h2", client(nics["h1"], nics["h2"]))...)
				g.Expect(d.Code).To(BeZero(), "%s", d)
			}).WithContext(ctx).WithTimeout(time.Minute).WithPolling(200 * time.Millisecond).Should(Succeed())
			Eventually(listening.Ended).WithContext(ctx).WithTimeout(20*time.Second).Should(BeTrue(), "the server goes on: %q", listening.Lines())
			Expect(listening.Code()).To(BeZero(), "the server: %q", listening.Lines())
		},
		perftest("ib_write_bw", "-n", "300", "-s", "65536"),
		perftest("ib_read_lat", "-n", "200", "-s", "64"),
		perftest("ib_send_bw", "-n", "300", "-s", "4096"),
		perftest("ib_atomic_bw", "-n", "200"),
		Entry("rping, through rdma_cm",
			func(h1, _ nic) []string { return []string{"rping", "-s", "-a", h1.addr, "-C", "20", "-V"} },
			func(h1, _ nic) []string { return []string{"rping", "-c", "-a", h1.addr, "-C", "20", "-V"} }, SpecTimeout(2*time.Minute)),
		Entry("ibv_rc_pingpong",
			func(h1, _ nic) []string {
				return []string{"ibv_rc_pingpong", "-d", h1.device, "-g", h1.gid, "-n", "100"}
			},
			func(h1, h2 nic) []string {
				return []string{"ibv_rc_pingpong", "-d", h2.device, "-g", h2.gid, "-n", "100", h1.addr}
			}, SpecTimeout(2*time.Minute)),
	)
})

func perftest(program string, flags ...string) TableEntry {
	argv := func(n nic) []string {
		return append([]string{program, "-F", "-d", n.device, "-x", n.gid}, flags...)
	}
	return Entry(program,
		func(h1, _ nic) []string { return argv(h1) },
		func(h1, h2 nic) []string { return append(argv(h2), h1.addr) }, SpecTimeout(2*time.Minute))
}

// host is an address without its prefix length.
func host(prefix string) string {
	for i, c := range prefix {
		if c == '/' {
			return prefix[:i]
		}
	}
	return prefix
}
