package workloads

import (
	"sync"
	"testing"
	"time"
)

// Who names packets by their connection may be slow to hear of it: nothing is sent before.
func TestAWorkloadWaitsUntilItsConnectionsHaveBeenHeardOf(t *testing.T) {
	for name, text := range map[string]string{
		"flows":       "[{name: w, kind: write, from: [h1], to: [h2], qps: 3, messages: 4}]",
		"collective":  "[{name: w, kind: all-reduce, size: 64KiB, messages: 2}]",
		"one by one":  "[{name: first, kind: write, from: [h1], to: [h2], messages: 4}, {name: w, kind: send, from: [h1], to: [h2], messages: 4, after: first}]",
		"all at once": "[{name: v, kind: write, from: [h2], to: [h1], messages: 4}, {name: w, kind: write, from: [h1], to: [h2], messages: 4}]",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2, 1, 1)
			var mu sync.Mutex
			pending, told := map[string]int{}, 0
			b.cfg.Connected = func(c Connection) func(func()) {
				mu.Lock()
				defer mu.Unlock()
				pending[c.Workload]++
				told++
				return func(heard func()) {
					time.AfterFunc(20*time.Millisecond, func() {
						mu.Lock()
						pending[c.Workload]--
						mu.Unlock()
						heard()
					})
				}
			}
			observe := b.cfg.Observer
			b.cfg.Observer = func(ev Event) {
				observe(ev)
				mu.Lock()
				defer mu.Unlock()
				if ev.Kind == EventStarted && pending[ev.Workload] > 0 {
					t.Errorf("%s started, and %d of its connections are unheard of", ev.Workload, pending[ev.Workload])
				}
			}
			for _, r := range b.run(text).Results {
				if !r.Passed {
					t.Errorf("%s: %s", r.Name, r.Failure)
				}
			}
			if told == 0 {
				t.Error("nothing was told of any connection")
			}
		})
	}
}
