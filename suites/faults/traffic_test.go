package faults_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/suites/match"
	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/topo"
)

// Traffic beside the workloads is seen on its sender's link, where nothing else comes from:
//
//	h1 ─workload─┐                    ┌─▶ h3
//	             leaf1 ──────────── leaf2
//	h2 ──beside──┘                    └─▶ h4

// beside is what a capture at h2's switch port has of a fault.
type beside struct {
	*seen
	fault     record.Fault
	sent, got []frame // by h2
	class     uint8   // DSCP
}

// all checks every packet of the fault's, and that there are as many as hits; late are those that may be underway uncounted when it heals, and
// tail is how long they may take.
func (b *beside) all(what string, late int64, tail time.Duration, all []frame, is func(*frame) bool) {
	GinkgoHelper()
	n := tallyOf(all, is)
	Expect(b.fault.Hits).To(And(BeNumerically("<=", n), BeNumerically(">=", n-late)), "hits counted, and %s in the capture", what)
	lives := b.lives("it")
	Expect(lives).To(HaveLen(1))
	for i := range all {
		f := &all[i]
		if !is(f) {
			continue
		}
		Expect(f.DSCP()).To(Equal(b.class), "the DSCP of %s", what)
		Expect(f.at).To(And(BeNumerically(">=", b.zero+besideAt-besideSlack()), BeNumerically("<=", lives[0].healed+besideSlack()+tail)), "when %s was sent", what)
	}
}

func tallyOf(all []frame, is func(*frame) bool) (n int64) {
	for i := range all {
		if is(&all[i]) {
			n++
		}
	}
	return n
}

// besideAt is when the traffic begins, besideSlack by how much captures and events may tell time differently.
const besideAt = 200 * time.Microsecond

// queue is how long what waits in a full queue takes to leave: a connection's segments find it reset then, and resets come back.
const queue = 2 * time.Millisecond

func besideSlack() time.Duration {
	if bed.Backend() == testbed.Sim {
		return 20 * time.Microsecond
	}
	return 100 * time.Microsecond
}

func isData(f *frame) bool { return f.op() == roce.OpRDMAWrite }

func isUDP(f *frame) bool { return f.Kind() == roce.KindUDP && f.DstPort() != roce.Port }

func isTCP(f *frame) bool {
	return f.Kind() >= roce.KindIP && f.Kind() < roce.KindUDP && f.Protocol() == roce.ProtocolTCP
}

type trafficCase struct {
	name, fault string
	class       uint8
	judge       func(*beside)
}

var traffic = []trafficCase{
	{"a burst of RoCE comes to its bytes", "kind: roce-burst, at: ['h2:eth0'], to: ['h4:eth0'], bytes: 400KB", 26, func(b *beside) {
		b.all("packets of WRITEs", 0, 0, b.sent, isData)
		sum := 0
		for i := range b.sent {
			if isData(&b.sent[i]) {
				sum += len(b.sent[i].Payload())
			}
		}
		Expect(sum).To(And(BeNumerically(">=", 400_000), BeNumerically("<", 400_000+16)), "bytes of payload")
	}},
	{"a burst of RoCE by rate, in streams, in a class of its own", "kind: roce-burst, at: ['h2:eth0'], to: ['h4:eth0'], rate: 500Mbps, size: 4KiB, streams: 2, dscp: 10", 10, func(b *beside) {
		b.all("packets of WRITEs", 0, 0, b.sent, isData)
		qps := map[uint32]int{}
		for i := range b.sent {
			if isData(&b.sent[i]) {
				qps[b.sent[i].DestQP()]++
			}
		}
		Expect(qps).To(HaveLen(2), "queue pairs")
		most := int(2*time.Millisecond/(65536*time.Nanosecond)) + 3 // 4 KiB at 500 Mb/s take 65.5 µs
		for qp, n := range qps {
			Expect(n).To(And(BeNumerically(">=", 5), BeNumerically("<=", most)), "packets of QP %#x", qp)
		}
	}},
	{"a burst of RoCE by rate, in messages of 16 packets", "kind: roce-burst, at: ['h2:eth0'], to: ['h4:eth0'], rate: 2Gbps, streams: 2", 26, func(b *beside) {
		b.all("packets of WRITEs", 0, 0, b.sent, isData)
		Expect(b.fault.Hits%16).To(BeZero(), "packets of whole messages")
	}},
	{"an incast, once", "kind: incast-burst, at: [h2], to: ['h4:eth0'], bytes: 100KB", 26, func(b *beside) {
		b.all("packets of WRITEs", 0, 0, b.sent, isData)
	}},
	{"an incast that comes back", "kind: incast-burst, at: [h2], to: ['h4:eth0'], bytes: 100KB, period: 1ms", 26, func(b *beside) {
		b.all("packets of WRITEs", 0, 0, b.sent, isData)
		Expect(b.fault.Hits%26).To(BeZero(), "packets of whole bursts")
		Expect(b.fault.Hits).To(BeNumerically(">=", 2*26), "bursts come back")
	}},
	{"UDP", "kind: udp-traffic, at: ['h2:eth0'], to: ['h4:eth0'], rate: 500Mbps, size: 1000, streams: 2, dscp: 8", 8, func(b *beside) {
		b.all("datagrams", 0, 0, b.sent, isUDP)
		for i := range b.sent {
			if isUDP(&b.sent[i]) {
				Expect(b.sent[i].data).To(HaveLen(14+20+8+1000), "a datagram")
			}
		}
		Expect(b.fault.Hits).To(BeNumerically("<=", 2*125+60), "2 streams of 500 Mb/s for 2 ms, and what the end takes")
	}},
	{"UDP of one stream", "kind: udp-traffic, at: ['h2:eth0'], to: ['h4:eth0'], rate: 1Gbps, size: 1400", 0, func(b *beside) {
		b.all("datagrams", 0, 0, b.sent, isUDP)
	}},
	{"TCP at the rate that it finds", "kind: tcp-traffic, at: ['h2:eth0'], to: ['h4:eth0'], streams: 4", 0, func(b *beside) {
		b.all("segments", 400, queue, append(append([]frame{}, b.sent...), b.got...), isTCP)
	}},
	{"TCP of one stream with a rate", "kind: tcp-traffic, at: ['h2:eth0'], to: ['h4:eth0'], rate: 500Mbps, dscp: 8", 8, func(b *beside) {
		b.all("segments", 40, queue, append(append([]frame{}, b.sent...), b.got...), isTCP)
	}},
	{"TCP of two streams with a rate", "kind: tcp-traffic, at: ['h2:eth0'], to: ['h4:eth0'], rate: 500Mbps, streams: 2, dscp: 8", 8, func(b *beside) {
		b.all("segments", 40, queue, append(append([]frame{}, b.sent...), b.got...), isTCP)
	}},
}

var _ = Describe("traffic beside the workloads is what the fault says, as long as it says, and counted to the packet", func() {
	for _, c := range traffic {
		covers(c.fault)
		if testbed.CanFault(bed.Backend(), "{name: x, "+c.fault+"}") != nil {
			continue
		}
		It(c.name, SpecTimeout(time.Minute), func(ctx SpecContext) {
			source := fmt.Sprintf(`apiVersion: rocebed/v1
name: beside
seed: 23
dilation: %d
topology:
  dumbbell: {left: 2, right: 2}
  rate: 10Gbps
workloads:
  - {name: w, kind: write, from: [h1], to: [h3], size: 16KiB, duration: 3ms, depth: 2}
faults:
  - {name: it, schedule: {at: %v, for: 2ms}, %s}
`, dilation(), besideAt, c.fault)
			s, err := testbed.Parse("spec.yaml", []byte(source))
			Expect(err).NotTo(HaveOccurred())
			l := &s.Topology.Links[s.Topology.LinksBetween("h2", "leaf1")[0]]
			ends := map[bool]topo.PortRef{l.A.Node == "leaf1": l.A, l.B.Node == "leaf1": l.B}
			out := &seen{Result: bed.Run(ctx, source, ends[true]), scenario: s}
			Expect(out.Result).To(match.Pass())
			for _, e := range out.Events {
				if e.Source == "run" && e.What == "started" {
					var n float64
					_, err := fmt.Sscanf(fmt.Sprint(e.Data), "map[fabric_ns:%g]", &n)
					Expect(err).NotTo(HaveOccurred())
					out.zero = time.Duration(n)
				}
			}
			b := &beside{seen: out, fault: out.healthy("it", 1), class: c.class}
			h2, _ := s.Plan.Port(ends[false])
			h4, _ := s.Plan.Port(s.Topology.NICs()[3])
			for _, f := range out.captured(ends[true]) {
				src, dst := f.SrcAddr().Netip(), f.DstAddr().Netip()
				switch {
				case src == h2.Addr.Addr() && dst == h4.Addr.Addr():
					b.sent = append(b.sent, f)
				case src == h4.Addr.Addr() && dst == h2.Addr.Addr():
					b.got = append(b.got, f)
				default:
					Fail(fmt.Sprintf("on the link of h2 something goes from %v to %v", src, dst))
				}
			}
			Expect(out.Workload("w").Retries).To(BeZero(), "the workload's retries")
			c.judge(b)
		})
	}
})
