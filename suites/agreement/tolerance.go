package agreement

import (
	"fmt"
	"math"
)

// Tolerance is how far a metric of a backend may be from the yardstick's: by Share of the yardstick's figure, or by Least, whichever
// is more.
type Tolerance struct {
	Metric string
	Unit   string
	Share  float64
	Least  float64 // in Unit
	Modes  []Mode
	Why    string
	of     func(*Figures) []float64
}

func one(v func(*Figures) float64) func(*Figures) []float64 {
	return func(f *Figures) []float64 { return []float64{v(f)} }
}

var (
	lossless = []Mode{Both, PFC}
	marking  = []Mode{Both, ECN}
	ordered  = []Mode{Both, PFC, ECN}
)

// Tolerances are those of all metrics. "Its own spread" is that of the yardstick's runs over twelve seeds, a standard deviation.
func Tolerances() []Tolerance {
	sum := one(func(f *Figures) float64 { return f.sum() / 1e9 })
	each := func(f *Figures) (out []float64) {
		for _, g := range f.Goodput {
			out = append(out, g/1e9)
		}
		return out
	}
	jain := one(func(f *Figures) float64 { return f.Jain })
	mean := one(func(f *Figures) float64 { return f.Mean / 1e3 })
	p99 := one(func(f *Figures) float64 { return f.P99 / 1e3 })
	cnps := one(func(f *Figures) float64 { return f.CNPs })
	pauses := one(func(f *Figures) float64 { return f.Pauses })
	paused := one(func(f *Figures) float64 { return float64(f.Paused) / 1e6 })
	retries := one(func(f *Figures) float64 { return f.Retries })
	return []Tolerance{
		{"goodput, all flows", "Gb/s", 0.10, 0, ordered, "queues that never run dry leave a line that the machine serves late as the only loss, and a run is thrown away where a port lost more than 8 % of it", sum},
		{"goodput, all flows", "Gb/s", 0.50, 0, []Mode{Neither}, "single packets decide how much is sent twice, as a NAK has up to 128 sent again: its own spread is 20 %, single runs of two flows are up to 36 % off the mean, and what jitter there is decides who finds room in a full queue", sum},
		{"goodput, each flow", "Gb/s", 0.15, 0, []Mode{PFC}, "pauses divide a port by turns, a packet each, and messages of 32 KiB are counted whole", each},
		{"goodput, each flow", "Gb/s", 0.30, 0, marking, "its own spread: rates swing by α/2 at each CNP, and 40 ms are a few dozen of them a flow (up to 17 % off the mean); SONiC's test plan allows 30 %", each},
		{"Jain's index", "", 0, 0.05, ordered, "30 % between flows is 0.02; the rest is for scenes whose shares differ by design", jain},
		{"queue, mean", "KB", 0.15, 10, []Mode{PFC}, "XOFF fixes it; a pause that takes 10 µs longer lets 12 KB more in", mean},
		{"queue, mean", "KB", 0.35, 15, marking, "its own spread is 17 %; a reaction point that hears of a mark a CNP interval later doubles that", mean},
		{"queue, mean", "KB", 0.35, 0, []Mode{Neither}, "the drop threshold fixes the top, and how often all wait for a timer, how long it is empty: its own spread is 12 %", mean},
		{"queue, p99", "KB", 0.15, 20, []Mode{PFC}, "as the mean, and two of the largest packets a port", p99},
		{"queue, p99", "KB", 0.35, 30, marking, "its own spread is 25 % where two flows share a port", p99},
		{"queue, p99", "KB", 0.15, 0, []Mode{Neither}, "the drop threshold fixes it", p99},
		{"CNPs", "", 0.30, 20, marking, "a Poisson count's spread is its root, 7 % of 200; a queue that is higher by a third marks more by as much", cnps},
		{"pause frames", "", 1.00, 20, []Mode{PFC}, "a pause is one frame here and refreshed there when it outlasts half its quanta: between half and twice as many", pauses},
		{"time paused", "ms", 0.20, 1, []Mode{PFC}, "what a port's rate leaves of the time: its complement is goodput, which is held to 10 %", paused},
		{"time paused", "ms", 0, 2, []Mode{Both}, "DCQCN keeps queues below XOFF but for a flow that starts, or two that grow at once: some pauses of 50 µs", paused},
		{"retransmissions", "", 0, 0, lossless, "nothing is lost, so nothing is sent again: not one", retries},
		{"retransmissions", "", 0, 10, []Mode{ECN}, "a queue above Kmax marks every packet; the overshoot of flows that grow at once may still reach the drop threshold", retries},
		{"retransmissions", "", 1.00, 0, []Mode{Neither}, "go-back-N is chaotic: between half and twice as many", retries},
	}
}

// Check is a metric held against the yardstick's.
type Check struct {
	Metric string  `json:"metric"`
	Flow   int     `json:"flow"` // of the scene, from 0; -1: of none
	Want   float64 `json:"want"`
	Got    float64 `json:"got"`
	Off    float64 `json:"off"`     // Got − Want
	Most   float64 `json:"allowed"` // that Off may be, up or down
	Held   bool    `json:"held"`
}

func (c *Check) String() string {
	return fmt.Sprintf("%s: %.4g, and the yardstick has %.4g: off by %.3g, %.3g is allowed", c.Metric, c.Got, c.Want, c.Off, c.Most)
}

// Compare holds figures against the yardstick's for the same scene and mode.
func Compare(yardstick, f *Figures) (all []Check) {
	for _, t := range Tolerances() {
		if !t.is(f.Mode) {
			continue
		}
		want, got := t.of(yardstick), t.of(f)
		for i := range want {
			c := Check{Metric: t.Metric, Flow: -1, Want: want[i], Got: got[i], Off: got[i] - want[i], Most: max(t.Share*math.Abs(want[i]), t.Least)}
			if len(want) > 1 {
				c.Flow = i
			}
			if t.Share >= 1 { // a factor, so half is as far as twice
				c.Held = got[i] <= (1+t.Share)*want[i]+t.Least && got[i] >= want[i]/(1+t.Share)-t.Least
			} else {
				c.Held = math.Abs(c.Off) <= c.Most
			}
			all = append(all, c)
		}
	}
	return all
}

func (t *Tolerance) is(m Mode) bool {
	for _, x := range t.Modes {
		if x == m {
			return true
		}
	}
	return false
}

func (f *Figures) sum() (bps float64) {
	for _, g := range f.Goodput {
		bps += g
	}
	return bps
}
