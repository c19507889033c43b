package agreement

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/workloads"
)

// Figures are what a run of a scene came to, over its measured part, in fabric time.
type Figures struct {
	Scene    string          `json:"scene"`
	Mode     Mode            `json:"mode"`
	Backend  testbed.Backend `json:"backend"`
	Dilation uint32          `json:"dilation"`
	Runs     int             `json:"runs"`        // that the figures are the mean of
	Goodput  []float64       `json:"goodput_bps"` // a flow, in the scene's order
	Jain     float64         `json:"jain"`
	Mean     float64         `json:"queue_mean_bytes"`
	P99      float64         `json:"queue_p99_bytes"`
	Marked   float64         `json:"ecn_marked"`
	CNPs     float64         `json:"cnps"`        // that slowed a sender down
	Pauses   float64         `json:"pauses"`      // frames that asked for one, at all ports
	Paused   time.Duration   `json:"paused_ns"`   // for how long ports were paused, all together
	Retries  float64         `json:"retries"`     // times that a requester went back
	Drops    float64         `json:"drops"`       // of frames, at switches
	Early    Early           `json:"warm_up"`     // what there was of these before
	Length   time.Duration   `json:"length_ns"`   // of what was measured
	Looks    int             `json:"looks"`       // at the queue
	Reaction time.Duration   `json:"reaction_ns"` // p99.9 of pauses, where it is measured
	Wall     time.Duration   `json:"wall_ns"`     // of the whole run
	Warnings []string        `json:"warnings"`
	Problems []string        `json:"problems"`
}

// Early are counts of the warm-up.
type Early struct {
	Pauses float64 `json:"pauses"`
	Drops  float64 `json:"drops"`
}

// Measure runs a scene on a backend of this machine, at how.Dilation times what the scene takes more. Where the machine didn't keep up it runs it again at twice the dilation, at most
// How.Again times: what it returns then are the last figures, with problems. Where packets are dropped the yardstick's are the mean of some seeds. An error means that there are none.
func (s *Scene) Measure(ctx context.Context, backend testbed.Backend, mode Mode, how How) (f *Figures, err error) {
	how.Dilation *= s.Slower
	if backend == Yardstick && mode == Neither {
		return s.mean(ctx, mode, how)
	}
	for again := 0; ; again++ {
		f, err = s.measure(ctx, backend, mode, how)
		if backend == testbed.Sim || again == how.Again || ctx.Err() != nil || err == nil && len(f.Problems) == 0 {
			return f, err
		}
		how.Dilation *= 2
	}
}

func (s *Scene) measure(ctx context.Context, backend testbed.Backend, mode Mode, how How) (*Figures, error) {
	text := s.Scenario(mode, how)
	parsed, err := testbed.Parse(s.Name+".yaml", []byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, text)
	}
	dir, err := os.MkdirTemp("", "rocebed-agreement-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out, err := testbed.Run(ctx, parsed, testbed.RunOptions{Backend: backend, Out: dir + "/record", Window: s.Window(how.Span)})
	if err != nil {
		return nil, err
	}
	f := &Figures{Scene: s.Name, Mode: mode, Backend: backend, Dilation: how.Dilation, Runs: 1, Wall: out.Summary.Wall, Warnings: out.Summary.Warnings, Problems: out.Summary.Problems}
	if out.Window == nil {
		return f, fmt.Errorf("%s, %s on %s: %s", s.Name, mode, backend, strings.Join(f.Problems, "; "))
	}
	f.fill(s, out)
	f.Problems = append(f.Problems, slowPorts(out.Window)...)
	return f, nil
}

// seeds are how many runs the yardstick's figures are the mean of where packets are dropped: which ones decides how the run goes on.
const seeds = 8

// mean is the mean of the yardstick's figures for as many seeds, from how.Seed on.
func (s *Scene) mean(ctx context.Context, mode Mode, how How) (*Figures, error) {
	var all *Figures
	for range seeds {
		f, err := s.measure(ctx, Yardstick, mode, how)
		if err != nil {
			return f, err
		}
		if all == nil {
			all = f
		} else {
			all.add(f)
		}
		how.Seed++
	}
	all.divide()
	return all, nil
}

// sums are what figures add up by.
func (f *Figures) sums() []*float64 {
	out := []*float64{&f.Jain, &f.Mean, &f.P99, &f.Marked, &f.CNPs, &f.Pauses, &f.Retries, &f.Drops, &f.Early.Pauses, &f.Early.Drops}
	for i := range f.Goodput {
		out = append(out, &f.Goodput[i])
	}
	return out
}

func (f *Figures) add(o *Figures) {
	for i, v := range o.sums() {
		*f.sums()[i] += *v
	}
	f.Runs += o.Runs
	f.Paused += o.Paused
	f.Wall += o.Wall
	f.Looks += o.Looks
	f.Problems = append(f.Problems, o.Problems...)
}

func (f *Figures) divide() {
	for _, v := range f.sums() {
		*v /= float64(f.Runs)
	}
	f.Paused /= time.Duration(f.Runs)
}

// enoughLine is what a port must have given of its line while packets waited for it. Runs count as kept up with less, but goodput is
// held to a tenth.
const enoughLine = 0.92

// slowPorts names the ports that this machine served too late, where a backend can tell.
func slowPorts(w *testbed.WindowReadings) (out []string) {
	busy := map[string]time.Duration{}
	for _, m := range w.Last.Samples {
		if m.Name == "shaper_busy_time" {
			busy[strings.Join(m.Labels, ":")] = time.Duration(m.Value)
		}
	}
	for _, m := range w.Last.Samples {
		port := strings.Join(m.Labels, ":")
		if m.Name == "shaper_share" && m.Value < enoughLine && busy[port] > w.Length()/4 {
			out = append(out, fmt.Sprintf("%s gave %.0f %% of its line while packets waited: the machine is too slow for the dilation", port, 100*m.Value))
		}
	}
	return out
}

func (f *Figures) fill(s *Scene, out *testbed.Outcome) {
	w := out.Window
	for _, flow := range s.Flows {
		f.Goodput = append(f.Goodput, goodput(out.Summary.Workloads, flow.Name))
	}
	f.Jain = workloads.Jain(f.Goodput)
	f.Mean, f.P99, f.Looks = w.Depths[0].Mean(), float64(w.Depths[0].Quantile(0.99)), w.Depths[0].Looks
	f.Length = w.Length()
	count := func(metric string) float64 { return w.Grown(metric, nil) }
	f.Marked, f.CNPs = count("ecn_marked"), count("rp_cnp_handled")
	f.Pauses, f.Paused = count("rx_prio_pause"), time.Duration(count("rx_prio_pause_duration"))
	f.Retries, f.Drops = count("completer_retry_err"), count("port_drops")
	for _, m := range w.First.Samples {
		switch m.Name {
		case "rx_prio_pause":
			f.Early.Pauses += m.Value
		case "port_drops":
			f.Early.Drops += m.Value
		}
	}
	for _, m := range w.Last.Samples {
		if m.Name == "pause_reaction_p999" {
			f.Reaction = time.Duration(m.Value)
		}
	}
}

func goodput(all []record.Workload, name string) float64 {
	for _, w := range all {
		if w.Name == name {
			return float64(w.GoodputBps)
		}
	}
	return 0
}
