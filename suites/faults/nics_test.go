package faults_test

import (
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/suites/bed"
)

// What NICs do wrong, in the fabric of settings_test.go.

// advances counts the ACKs of some time that acknowledge more than all before them did, and how many packets more.
func advances(all []frame, from, to time.Duration) (acks, packets int) {
	type way struct {
		dst netip.Addr
		qpn uint32
	}
	last := map[way]roce.PSN{}
	for i := range all {
		f := &all[i]
		if !isAck(f) || f.at >= to {
			continue
		}
		k := way{netip.AddrFrom16(f.DstAddr()).Unmap(), f.DestQP()}
		was, ok := last[k]
		if ok && !f.PSN().After(was) {
			continue
		}
		if ok && f.at >= from {
			acks, packets = acks+1, packets+f.PSN().Sub(was)
		}
		last[k] = f.PSN()
	}
	return acks, packets
}

// progress is what ACKs acknowledge while the fault lasts, and when none is near: how many they are, for how many packets, and in how much time. Unlike the
// packets that arrive it is what the NIC is through with, whatever has room in its receive buffer and whatever is sent again.
func (w *window) progress(all []frame) (during, outside progress) {
	from := w.life.applied + margin()
	during.acks, during.packets = advances(all, from, w.end)
	during.time = w.end - from
	for _, span := range w.free {
		acks, packets := advances(all, span[0], span[1])
		outside.acks, outside.packets, outside.time = outside.acks+acks, outside.packets+packets, outside.time+span[1]-span[0]
	}
	return during, outside
}

type progress struct {
	acks, packets int
	time          time.Duration
}

// rate is in packets a millisecond.
func (p progress) rate() float64 { return float64(p.packets) * 1e6 / float64(p.time) }

// each is how many packets one ACK is for.
func (p progress) each() float64 { return float64(p.packets) / float64(max(p.acks, 1)) }

var _ = Describe("NICs that do it wrong for a while", bed.Tries(), func() {
	if !softOnly() {
		return
	}
	in, out := func(w *window) []frame { return w.ways[0].came }, func(w *window) []frame { return w.ways[1].came }
	behind := func(w *window) {
		d, o := w.progress(out(w))
		Expect(d.rate()*1.4).To(BeNumerically("<", o.rate()), "%s: packets acknowledged a millisecond, %+v and %+v when nothing is wrong", w.name, d, o)
	}
	// No timer ends while a fault holds up what isn't lost: what is sent again would arrive all the same.
	both := "  - {name: a, kind: write, from: [h1], to: [h3], size: 64KiB, duration: DURATION, depth: 4, qp: {timeout: 9, retry_cnt: 7}}\n" +
		"  - {name: b, kind: write, from: [h2], to: [h4], size: 64KiB, duration: DURATION, depth: 4, qp: {timeout: 9, retry_cnt: 7}}\n"
	sections := four + "switches:\n  memory: 8MB\n  pfc: {}\n  ecn: {kmin: 10KB, kmax: 40KB, pmax: 20%}\nnics: {dcqcn: mlx5}\n"
	settingsOn("are seen on their link", sections, both, "leaf2", "h3", []setting{
		{"h3:eth0", "kind: pfc-storm", func(w *window) {
			w.storm(out(w))
			Expect(tally(w.during(in(w)), isData)).To(BeZero(), "%s: data that arrives", w.name)
			w.counted(out(w), isPFC)
		}},
		// Each pause lasts for 205 µs, so that a few begin and end meanwhile.
		{"h3:eth0", "kind: pfc-storm, priorities: [3], duty: 90%, quanta: 4000", func(w *window) {
			w.storm(out(w))
			d, o := w.rates(in(w), isData)
			Expect(d*2).To(BeNumerically("<", o), "%s: data packets a millisecond while it lasts, %v when nothing is wrong", w.name, o)
			w.counted(out(w), isPFC)
		}},
		{"h3:eth0", "kind: cnp-off", func(w *window) { w.only("CNPs", out(w), isCNP, false) }},
		{"h3:eth0", "kind: cnp-cap, frequency: 2/ms", func(w *window) {
			n := tally(w.during(out(w)), isCNP)
			Expect(n).To(BeNumerically("<=", 3), "%s: CNPs", w.name)
		}},
		{"h3:eth0", "kind: ack-delay, delay: 40us", func(w *window) { w.counted(out(w), isAck) }},
		{"h3:eth0", "kind: ack-coalesce, ack_every: 2, delay: 1ms", func(w *window) {
			d, o := w.progress(out(w))
			Expect(d.each()).To(BeNumerically(">", 1.3*o.each()), "%s: packets that an ACK is for, %+v and %+v when nothing is wrong", w.name, d, o)
		}},
		// What has arrived by the end keeps the NIC busy for 4 ms in all: what comes next needs no traffic.
		{"h3:eth0", "kind: slow-dma, rate: 500Mbps", behind},
		{"h3:eth0", "kind: pfc-storm, frequency: 10/ms, quanta: 1000", func(w *window) {
			isOurs := func(f *frame) bool { return pauses(f, 3) == 1000 } // no pause of the NIC's own has these quanta
			var at []time.Duration
			for _, f := range between(out(w), w.begin, w.life.healed+margin()) {
				if isOurs(&f) {
					at = append(at, f.at)
				}
			}
			Expect(len(at)).To(BeNumerically(">=", 5), "%s: pauses of so many quanta", w.name)
			Expect(float64(len(at)-1)*1e6/float64(at[len(at)-1]-at[0])).To(BeNumerically("~", 10, 2), "%s: pauses a millisecond between the first and the last", w.name)
			w.counted(out(w), isOurs)
		}},
		{"h3:eth0", "kind: pcie-downgrade, pcie: gen1 x1", func(w *window) { w.counted(in(w), isData) }},
		{"h3:eth0", "kind: mtt-thrash, entries: 4", func(w *window) {}},
		{"h3:eth0", "kind: mtt-thrash, entries: 1, delay: 50us", behind},
	})
	settingsOn("are seen where CNPs arrive", sections, both, "leaf1", "h1", []setting{
		{"leaf1-h1", "kind: cnp-starved", func(w *window) { w.only("CNPs", in(w), isCNP, false) }},
		{"leaf1-h1", "kind: cnp-starved, rate: 1Mbps", func(w *window) {
			Expect(tally(w.during(in(w)), isCNP)).To(BeNumerically("<=", 4), "%s: CNPs, of which 1 Mb/s carries one in 0.8 ms", w.name)
		}},
		{"h1:eth0", "kind: dcqcn-params, dcqcn: {rpg_ai_rate: 2Gbps}", func(w *window) {}},
	})
})
