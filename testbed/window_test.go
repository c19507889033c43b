package testbed

import (
	"context"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/rocebed/rocebed/topo"
)

// Two senders into one receiver: in the window its link is full all the time, and what waits is what they may have unacknowledged.
func TestAWindowIsMeasuredByItself(t *testing.T) {
	s, err := Parse("w.yaml", []byte(`apiVersion: rocebed/v1
name: w
topology: {star: {hosts: 3}, rate: 10Gbps, delay: 1us}
nics: {profile: rxe}
workloads:
  - {name: w, kind: incast, from: [h1, h2], to: [h3], duration: 5ms, warm_up: 1ms}
`))
	if err != nil {
		t.Fatal(err)
	}
	w := &Window{From: time.Millisecond, To: 3 * time.Millisecond, Queues: []Queue{{topo.PortRef{Node: "leaf1", Port: "eth2"}, 3}}, Every: 10 * time.Microsecond}
	out, err := Run(context.Background(), s, RunOptions{Backend: Sim, Out: filepath.Join(t.TempDir(), "record"), Window: w})
	if err != nil || !out.Passed() || out.Window == nil {
		t.Fatalf("%v %+v", err, out)
	}
	r := out.Window
	if late := r.First.At - time.Millisecond; late < 0 || late > stride || (r.Length()-2*time.Millisecond).Abs() > stride {
		t.Errorf("measured from %v for %v", r.First.At, r.Length())
	}
	line := 10e9 / 8 * r.Length().Seconds()
	got := r.Grown("port_tx_bytes", func(labels []string) bool { return labels[0] == "leaf1" && labels[1] == "eth2" })
	if got < 0.98*line || got > line {
		t.Errorf("the receiver's link carried %v bytes; the line has %v", got, line)
	}
	d := &r.Depths[0]
	most := 2 * 128 * 4200.0 // two queue pairs' unacknowledged packets
	if d.Looks < 195 || d.Mean() < most/2 || d.Mean() > most || float64(d.Quantile(0.99)) < d.Mean() || float64(d.Quantile(0.99)) > most || float64(d.Quantile(0.01)) > d.Mean() {
		t.Errorf("%d looks found %v bytes waiting in the mean, %v in all but 1 %%; two queue pairs have at most %v", d.Looks, d.Mean(), d.Quantile(0.99), most)
	}
	if jain := out.Summary.Workloads[0].Jain; math.Abs(jain-1) > 0.05 {
		t.Errorf("Jain's index of two that share a link is %v", jain)
	}

	w.To = time.Second // the workload is over long before
	out, err = Run(context.Background(), s, RunOptions{Backend: Sim, Out: filepath.Join(t.TempDir(), "record"), Window: w})
	if err != nil || out.Passed() || out.Window != nil {
		t.Errorf("a window that the run doesn't reach the end of: %v %+v", err, out)
	}
}
