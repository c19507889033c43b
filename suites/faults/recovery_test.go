package faults_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/suites/match"
	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/record"
)

// PSN 5 of queue pair 0 is lost in iterations 1, 2 and 3. The first gap is answered by a NAK; the responder sends no second one for the same gap (IB
// specification 9.7.5.2.8: one NAK until the expected PSN has come), so what is lost again then waits for the requester's timer. With selective
// repeat every packet behind the gap is answered.
const psn5 = "  - {name: w, kind: write, from: [h1], to: [h2], start: 1ms, size: 16KiB, messages: 2, depth: 1, qp: {mtu: 1024, timeout: 8}}\n"

// The timer of exponent 8 is 4.096 µs × 2^8; an implementation may take up to four times that (9.7.6.1.3). Between two passes of a packet an eighth of it may
// be missing, where the first waited on its way from the NIC and the second did not.
const shortest, longest = 1048 * time.Microsecond * 7 / 8, 4 * 1049 * time.Microsecond

func recoveryModes() []string {
	if bed.Backend() == testbed.Kernel {
		return []string{""} // rxe goes back N
	}
	return []string{"go-back-n", "go-back-0", "selective-repeat"}
}

var _ = Describe("PSN 5 of queue pair 0, lost in iterations 1, 2 and 3", func() {
	for _, mode := range recoveryModes() {
		It("is recovered three times, and the record says by what and how long it took: "+mode, func(ctx SpecContext) {
			if testbed.CanFault(bed.Backend(), "{name: x, kind: packets, at: ['h1:eth0'], direction: egress, events: [{match: {psn: 5}, do: drop}]}") != nil {
				Fail(fmt.Sprintf("%s has no packet events", bed.Backend()))
			}
			nics := ""
			if mode != "" {
				nics = "nics: {recovery: " + mode + "}\n"
			}
			fault := "direction: egress, kind: packets, events: [{match: {qp: 0, psn: 5, iteration: 1..3}, do: drop}]"
			s := observe(ctx, dumbbell(nics, underFault(psn5, fault)), "leaf1", "leaf2")
			Expect(s.Result).To(match.Pass())
			Expect(s.Warnings).NotTo(ContainElement(ContainSubstring("recover")))
			f := s.healthy("it", 1)
			Expect(f.Hits).To(BeEquivalentTo(3))
			Expect(f.Recoveries).To(HaveLen(3))
			var all []record.Recovery
			r, err := record.Open(s.Record)
			Expect(err).NotTo(HaveOccurred())
			Expect(r.JSON(record.RecoveriesFile, &all)).To(Succeed())
			Expect(all).To(Equal(f.Recoveries), "the record's file and the summary")

			// What the capture says: each time that the PSN left, and whether a NAK came in between.
			first := s.firstPSN()
			var left []time.Duration
			var naks []time.Duration
			for i := range s.ways[0].left {
				if p := &s.ways[0].left[i]; p.isRoCE() && p.PSN() == first.Add(5) {
					left = append(left, p.at)
				}
			}
			for i := range s.ways[1].came {
				p := &s.ways[1].came[i]
				if !p.isRoCE() {
					continue
				}
				if p.Opcode() == 0xd1 || p.Opcode() == 0x11 && byte(p.AETH().Syndrome) == 0x60 {
					naks = append(naks, p.at)
				}
			}
			if mode == "go-back-0" { // the message begins anew, and everything before the gap is sent again with it
				Expect(len(left)).To(BeNumerically(">=", 4))
			} else {
				Expect(left).To(HaveLen(4), "times that PSN 5 left")
			}
			var how []string
			for i, one := range f.Recoveries {
				Expect(one).To(And(HaveField("PSN", BeEquivalentTo(5)), HaveField("Iteration", i+1), HaveField("Class", "write"), HaveField("Workload", "w")))
				how = append(how, one.How)
				told := false
				for _, at := range naks {
					told = told || at > left[i] && at < left[i+1]
				}
				byTimer := left[i+1]-left[i] >= shortest
				Expect(one.How == record.ByNAK).To(Equal(told && !byTimer), "a NAK came between iterations %d and %d, and the requester did not wait for its timer: %+v", i+1, i+2, one)
				Expect(one.How == record.ByTimeout).To(Equal(byTimer), "%+v", one)
				slack := margin()
				Expect(one.Took).To(BeNumerically("~", left[i+1]-left[i], slack), "%+v", one)
				Expect(s.zero+one.Lost).To(BeNumerically("~", left[i], slack+20*time.Microsecond), "%+v", one)
				switch one.How {
				case record.ByTimeout:
					Expect(one.Took).To(And(BeNumerically(">=", shortest), BeNumerically("<", longest+slack)), "%+v", one)
				default:
					Expect(one.Took).To(BeNumerically("<", shortest), "%+v", one)
				}
			}
			Expect(how[0]).To(Equal(record.ByNAK), strings.Join(how, ", "))
		}, SpecTimeout(time.Minute))
	}
})
