package faults_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/suites/bed"
)

// Linux-switches with a queue a priority, and rxe-hosts with DCQCN. rxe keeps 128 packets of each queue pair under way, and agents take milliseconds of
// wall time to react: what is judged leaves both room.
var _ = Describe("settings of linux-switches with a queue a priority that are wrong for a while", bed.Tries(), func() {
	if softOnly() {
		return
	}
	settingsOn("are seen in marks and in what queues hold",
		four+"switches:\n  memory: 8MB\n  alpha: 8\n  ecn: {kmin: 10KB, kmax: 60KB, pmax: 100%}\n",
		// A timer of 1 ms, so that what loses the whole end of a window is sent again within a millisecond of the fault.
		"  - {name: a, kind: write, from: [h1], to: [h3], size: 64KiB, duration: DURATION, depth: 4, qp: {timeout: 8, retry_cnt: 7}}\n"+
			"  - {name: b, kind: write, from: [h2], to: [h4], size: 64KiB, duration: DURATION, depth: 4, qp: {timeout: 8, retry_cnt: 7}}\n",
		"leaf1", "leaf2", []setting{
			{"leaf1-leaf2", "kind: ecn-off, priorities: [3]", unmarked},
			{"leaf1-leaf2", "kind: ecn-thresholds, kmin: 7MB, kmax: 8MB, pmax: 100%, priorities: [3]", unmarked},
			moved,
			{"leaf1-leaf2", "kind: stuck-queue, priorities: [3]", func(w *window) { w.only("data", across(w), isData, false) }},
			{"leaf1", "kind: buffer-shrink, buffer: 450KB", gone(time.Millisecond)},
			{"leaf1", "kind: buffer-alpha, alpha: 1/512", gone(time.Millisecond)},
		})
	// What the kernel tells a peer with the next frame leaves one frame or two beyond the threshold: whether the last finds no room is chance.
	settingsOn("are seen in pauses and in what is lost",
		four+"  override:\n    - {link: 'leaf2 -- h3', rate: 5Gbps}\nswitches:\n  pfc: {xoff: 40KB}\n",
		"  - {name: a, kind: write, from: [h1], to: [h3], size: 64KiB, duration: DURATION, depth: 8, qp: {timeout: 9, retry_cnt: 7}}\n"+
			"  - {name: b, kind: write, from: [h2], to: [h3], size: 64KiB, duration: DURATION, depth: 8, qp: {timeout: 9, retry_cnt: 7}}\n",
		"leaf1", "leaf2", pauseSettings(passed))
	both := "  - {name: a, kind: write, from: [h1], to: [h3], size: 64KiB, duration: DURATION, depth: 4, qp: {timeout: 9, retry_cnt: 7}}\n" +
		"  - {name: b, kind: write, from: [h2], to: [h3], size: 64KiB, duration: DURATION, depth: 4, qp: {timeout: 9, retry_cnt: 7}}\n"
	sections := four + "switches:\n  pfc: {}\n  ecn: {kmin: 10KB, kmax: 40KB, pmax: 20%}\nnics: {dcqcn: mlx5}\n"
	slower := func(w *window) {
		d, o := w.rates(across(w), isData)
		Expect(2*d).To(BeNumerically("<", o), "%s: data packets a millisecond while it lasts, %v when nothing is wrong", w.name, o)
	}
	settingsOn("are seen on a NIC's link", sections, both, "leaf2", "h3", []setting{
		{"h3:eth0", "kind: pfc-storm", func(w *window) {
			w.storm(back(w))
			slower(w)
			w.counted(back(w), isPFC)
		}},
		{"h3:eth0", "kind: pfc-storm, priorities: [3], duty: 90%, quanta: 4000", func(w *window) {
			w.storm(back(w))
			slower(w)
			w.counted(back(w), isPFC)
		}},
		{"h3:eth0", "kind: pfc-storm, frequency: 10/ms, quanta: 1000", func(w *window) {
			for _, f := range w.during(back(w)) {
				if isPause(&f) {
					Expect(pauses(&f, 3)).To(Equal(1000), w.name)
				}
			}
			w.counted(back(w), isPFC)
		}},
		{"h3:eth0", "kind: cnp-off", func(w *window) { w.only("CNPs", back(w), isCNP, false) }},
		{"h3:eth0", "kind: cnp-cap, frequency: 2/ms", func(w *window) {
			Expect(tally(w.during(back(w)), isCNP)).To(BeNumerically("<=", 3), "%s: CNPs", w.name)
		}},
	})
	settingsOn("are seen where CNPs arrive", sections, both, "leaf1", "h1", []setting{
		{"leaf1-h1", "kind: cnp-starved", func(w *window) { w.only("CNPs", across(w), isCNP, false) }},
		{"leaf1-h1", "kind: cnp-starved, rate: 1Mbps", func(w *window) {
			Expect(tally(w.during(across(w)), isCNP)).To(BeNumerically("<=", 4), "%s: CNPs, of which 1 Mb/s carries one in 0.8 ms", w.name)
		}},
		{"h1:eth0", "kind: dcqcn-params, dcqcn: {rpg_ai_rate: 2Gbps}", func(*window) {}},
	})
})
