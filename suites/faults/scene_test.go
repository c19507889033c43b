package faults_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/gopacket/pcapgo"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/topo"
)

// linkDelay is that of the struck link.
const linkDelay = time.Microsecond

// frame is what a capture has of one: whole, also where a fault has made it something that no parser takes.
type frame struct {
	at   time.Duration // of the fabric, as captures count
	data []byte
	roce.View
}

// isRoCE says that the frame can be read to the end.
func (f *frame) isRoCE() bool { return f.Kind() == roce.KindRoCE }

// op is the frame's operation, OpUnknown where it is no RoCE.
func (f *frame) op() roce.Operation {
	if !f.isRoCE() {
		return roce.OpUnknown
	}
	return f.Opcode().Info().Operation
}

// way is one direction of the struck link: what left its one end, and what came to the other.
type way struct {
	from, to   topo.PortRef
	left, came []frame
}

// seen is a run over the struck link, with captures at both of its ends.
type seen struct {
	*bed.Result
	scenario *testbed.Scenario
	ways     [2]way        // from leaf1 to leaf2, and back
	zero     time.Duration // of the schedule, in the captures' time
}

// life is when a fault was asked for at the earliest, in force at the latest, and healed, in the captures' time. A strike each.
type life struct{ applied, healed time.Duration }

// lives are a fault's strikes.
func (s *seen) lives(fault string) (out []life) {
	for _, e := range s.Events {
		switch {
		case e.Source != "fault" || e.Name != fault:
		case e.What == "applied":
			out = append(out, life{applied: s.zero + e.At, healed: 1 << 62})
		case e.What == "healed" && len(out) > 0:
			out[len(out)-1].healed = s.zero + e.At
		}
	}
	return out
}

// observe runs a scenario and reads what passed the two ends of the link between two nodes.
func observe(ctx context.Context, source, a, b string) *seen {
	GinkgoHelper()
	s, err := testbed.Parse("spec.yaml", []byte(source))
	Expect(err).NotTo(HaveOccurred(), source)
	links := s.Topology.LinksBetween(a, b)
	Expect(links).NotTo(BeEmpty(), "links between %s and %s", a, b)
	l := &s.Topology.Links[links[0]]
	from, to := l.A, l.B
	if from.Node != a {
		from, to = to, from
	}
	captures := []topo.PortRef{from, to}
	near := [2]topo.PortRef{inner(s, from), inner(s, to)}
	if bed.Backend() == testbed.Soft {
		captures = append(captures, slices.DeleteFunc(slices.Clone(near[:]), func(p topo.PortRef) bool { return p.Node == "" })...)
	}
	out := &seen{Result: bed.Run(ctx, source, captures...), scenario: s}
	for _, e := range out.Events {
		if e.Source == "run" && e.What == "started" {
			var n float64
			_, err := fmt.Sscanf(fmt.Sprint(e.Data), "map[fabric_ns:%g]", &n)
			Expect(err).NotTo(HaveOccurred())
			out.zero = time.Duration(n)
		}
	}
	atA, atB := out.captured(from), out.captured(to)
	macs := [2]topo.MAC{out.mac(from), out.mac(to)}
	pick := func(all []frame, mac topo.MAC) []frame {
		return slices.DeleteFunc(slices.Clone(all), func(f frame) bool { return !bytes.Equal(f.data[6:12], mac[:]) })
	}
	out.ways = [2]way{
		{from, to, pick(atA, macs[0]), pick(atB, macs[0])},
		{to, from, pick(atB, macs[1]), pick(atA, macs[1])},
	}
	// Software nodes on veths strike before a frame reaches the interface, where captures are taken: what left is what came from the only host behind
	// the switch, as the switch sends it on.
	if bed.Backend() == testbed.Soft {
		for i := range out.ways {
			if w := &out.ways[i]; near[i].Node != "" {
				w.left = forwarded(pick(out.captured(near[i]), out.peerMAC(near[i])), macs[i], out.peerMAC(w.from))
			}
		}
	}
	return out
}

// inner is the port of a node that all comes in by that leaves by another one; none where the node has more than two.
func inner(s *testbed.Scenario, out topo.PortRef) (in topo.PortRef) {
	for _, p := range s.Plan.Ports(out.Node) {
		if p.Ref == out {
			continue
		}
		if in.Node != "" {
			return topo.PortRef{}
		}
		in = p.Ref
	}
	return in
}

// forwarded is what a switch sends of what has come in: its own address on the link, one hop less, the checksum anew.
func forwarded(all []frame, src, dst topo.MAC) []frame {
	for i := range all {
		b := all[i].data
		copy(b[0:], dst[:])
		copy(b[6:], src[:])
		b[22]--
		checksum(b)
		_ = all[i].Parse(b)
	}
	return all
}

// checksum writes IPv4's.
func checksum(b []byte) {
	binary.BigEndian.PutUint16(b[24:], 0)
	sum := uint32(0)
	for i := l3; i < l4; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(b[24:], ^uint16(sum))
}

func (s *seen) peerMAC(p topo.PortRef) topo.MAC {
	planned, ok := s.scenario.Plan.Port(p)
	Expect(ok).To(BeTrue(), "%v", p)
	return planned.PeerMAC
}

func (s *seen) mac(p topo.PortRef) topo.MAC {
	planned, ok := s.scenario.Plan.Port(p)
	Expect(ok).To(BeTrue(), "%v", p)
	return planned.MAC
}

// captured are all frames of a capture that are IP or pause frames, in their order.
func (s *seen) captured(p topo.PortRef) (all []frame) {
	GinkgoHelper()
	r, err := record.Open(s.Record)
	Expect(err).NotTo(HaveOccurred())
	b, err := r.File(record.CaptureName(p.Node, p.Port))
	Expect(err).NotTo(HaveOccurred())
	in, err := pcapgo.NewNgReader(bytes.NewReader(b), pcapgo.DefaultNgReaderOptions)
	Expect(err).NotTo(HaveOccurred())
	for {
		data, info, err := in.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return all
		}
		Expect(err).NotTo(HaveOccurred())
		f := frame{at: time.Duration(info.Timestamp.UnixNano()), data: data}
		_ = f.Parse(data) // of what is damaged as much as can be read
		if len(data) >= 34 && (data[12] == 8 && data[13] == 0 || data[12] == 0x88 && data[13] == 8) {
			all = append(all, f)
		}
	}
}

// healthy holds a fault to what every fault must come to.
func (s *seen) healthy(name string, strikes int) record.Fault {
	GinkgoHelper()
	f := s.Fault(name)
	Expect(f).To(And(
		HaveField("Strikes", strikes), HaveField("Verified", true), HaveField("Healed", true),
		HaveField("Hits", BeNumerically(">", 0)), HaveField("Problems", BeEmpty())), "%+v", f)
	clean := 0
	for _, e := range s.Events {
		if e.Source == "fault" && e.Name == name && e.What == "verified clean" {
			clean++
		}
	}
	Expect(clean).To(Equal(strikes), "%s was verified clean so often", name)
	return f
}

// between are the frames of some time.
func between(all []frame, from, to time.Duration) (out []frame) {
	for i := range all {
		if all[i].at >= from && all[i].at < to {
			out = append(out, all[i])
		}
	}
	return out
}

// quiet checks that a fault came into force before any packet of the workloads and was healed between the last of the first ones and the tail, so that
// every packet was either under the fault or not. It returns the moments between which it was in force.
func (s *seen) quiet(fault string) (from, to time.Duration) {
	GinkgoHelper()
	lives := s.lives(fault)
	Expect(lives).To(HaveLen(1))
	l := lives[0]
	var tail time.Duration
	for _, e := range s.Events {
		if e.Source == "workload" && e.Name == "tail" && e.What == "started" {
			tail = s.zero + e.At
		}
	}
	Expect(tail).To(BeNumerically(">", l.healed), "the last workload began after the fault had healed")
	for i := range s.ways {
		for _, all := range [][]frame{s.ways[i].left, s.ways[i].came} {
			before := between(all, 0, l.applied)
			Expect(before).To(BeEmpty(), "packets from before the fault was in force")
			during := between(all, 0, tail)
			Expect(during).NotTo(BeEmpty(), "packets under the fault")
			Expect(during[len(during)-1].at).To(BeNumerically("<", l.healed), "the last packet under the fault: it has to be over by then")
			Expect(len(all)).To(BeNumerically(">", len(during)), "packets after the fault")
		}
	}
	return l.applied, tail
}

// unchanged checks that what left from some time on came as it was, and in its order.
func (w *way) unchanged(since time.Duration) {
	GinkgoHelper()
	left, came := between(w.left, since, 1<<62), between(w.came, since, 1<<62)
	Expect(came).To(HaveLen(len(left)), "after the fault: packets that came to %v of those that left %v", w.to, w.from)
	for i := range left {
		if !bytes.Equal(left[i].data, came[i].data) {
			Fail(fmt.Sprintf("after the fault packet %d that left %v for %v came as another one:\n%x\n%x", i, w.from, w.to, head(left[i].data), head(came[i].data)))
		}
	}
}

// firstPSN is that of the first request that left.
func (s *seen) firstPSN() roce.PSN {
	for i := range s.ways[0].left {
		if p := &s.ways[0].left[i]; p.isRoCE() && p.Opcode().Info().Any(roce.Request) {
			return p.PSN()
		}
	}
	Fail("no request ever left")
	return 0
}

func head(b []byte) []byte { return b[:min(len(b), 96)] }

// dilation is the least that two busy cores can do with a few Mb/s of the rows' traffic.
func dilation() int {
	switch bed.Backend() {
	case testbed.Soft:
		return 128
	case testbed.Kernel:
		return 512
	}
	return 1
}

// dumbbell is h1 ── leaf1 ──fault── leaf2 ── h2 with some sections.
func dumbbell(sections ...string) string {
	return fmt.Sprintf(`apiVersion: rocebed/v1
name: faults
seed: 23
dilation: %d
topology:
  dumbbell: {left: 1, right: 1}
  rate: 10Gbps
`, dilation()) + strings.Join(sections, "")
}
