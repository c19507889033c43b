package workloads

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rocebed/rocebed/topo"
)

func TestFlowsOfAKilledHostEndWithTheirPeersAndFailNothing(t *testing.T) {
	for _, s := range []string{
		"kind: write", "kind: read", "kind: send", "kind: atomic, size: 8B", "kind: send, transport: ud, size: 1KiB", "kind: write, transport: uc", "kind: write, mode: latency",
	} {
		for _, host := range []string{"h1", "h2"} {
			b := newBench(t, 3, 1, 1)
			b.cfg.ControlTimeout = time.Second
			var e atomic.Pointer[Engine]
			var n atomic.Int32
			killed := make(chan bool)
			b.net.meddle = func(m *memMsg) {
				if n.Add(1) == 20 {
					e.Load().Kill(host, func() { close(killed) })
				}
			}
			spec := "{name: w, " + s + ", from: [h1], to: [h2], messages: 100000, stall_timeout: 20s}"
			// Of a workload that has not begun, and one that comes later, on hosts that live.
			more := ", {name: late, kind: write, from: [h3], to: [" + map[string]string{"h1": "h2", "h2": "h1"}[host] + "], messages: 10, start: 20ms}"
			engine, err := NewEngine(b.cfg, specs(t, "["+spec+more+"]"))
			if err != nil {
				t.Fatal(err)
			}
			e.Store(engine)
			done := make(chan *Report, 1)
			engine.Start(func(r *Report) { done <- r })
			r := b.wait(done)
			<-killed
			for _, w := range r.Results {
				if !w.Passed || len(w.Flows) != 1 || w.Flows[0].Killed != (w.Name == "w") || (w.Flows[0].Failure != "") != (w.Name == "w") {
					t.Errorf("%s, %s killed: workload %s: passed %v (%s), %+v", s, host, w.Name, w.Passed, w.Failure, w.Flows)
				}
			}
			if r.Err != nil {
				t.Errorf("%s, %s killed: %v", s, host, r.Err)
			}
		}
	}
}

func TestAWorkloadThatWantsAKilledHostLaterIsNotSetUp(t *testing.T) {
	b := newBench(t, 2, 1, 1)
	var n atomic.Int32
	var e atomic.Pointer[Engine]
	b.net.meddle = func(m *memMsg) {
		if n.Add(1) == 3 {
			e.Load().Kill("h2", func() {})
		}
	}
	engine, err := NewEngine(b.cfg, specs(t, "[{name: w, kind: write, from: [h1], to: [h2], messages: 100000}, {name: next, kind: write, from: [h1], to: [h2], messages: 10, after: w}]"))
	if err != nil {
		t.Fatal(err)
	}
	e.Store(engine)
	done := make(chan *Report, 1)
	engine.Start(func(r *Report) { done <- r })
	if next := b.wait(done).Results[1]; next.Passed || !strings.Contains(next.Failure, "the process of h2 was killed") {
		t.Errorf("passed %v, %q", next.Passed, next.Failure)
	}
}

// watcher holds receives of a host back from the moment of opening on.
type watcher struct {
	port topo.PortRef
	held uint64
	ends []*End
}

func (w *watcher) Opened(e *End) {
	if e.Port == w.port {
		w.ends = append(w.ends, e)
		if err := e.HoldReceives(&w.held); err != nil {
			panic(err)
		}
	}
}

func (w *watcher) Closed(e *End) {
	if e.Port == w.port {
		w.ends = nil
	}
}

func TestReceivesThatAreHeldBackArePostedOnceTheyMayBe(t *testing.T) {
	b := newBench(t, 2, 1, 1)
	w := &watcher{port: b.cfg.NICs[1].Port}
	b.cfg.Watch = w
	waited := make(chan uint64, 1)
	b.cfg.Observer = func(ev Event) {
		if ev.Kind == EventStarted {
			b.devs[1].l.Post(func() {
				waited <- w.held
				for _, e := range w.ends {
					if err := e.HoldReceives(nil); err != nil || e.ReceivesHeld() {
						t.Error(err)
					}
				}
			})
		}
	}
	res := b.pass("[{name: w, kind: send, from: [h1], to: [h2], messages: 50, depth: 4}]")
	if held := <-waited; held < 8 || res.VerifiedBytes != 50*65536 || len(w.ends) > 0 {
		t.Errorf("%d receives were held back, %d bytes verified", held, res.VerifiedBytes)
	}
}

func TestStepsOfACollectiveTakeTheTimeThatTheyAreSaidTo(t *testing.T) {
	for kind, steps := range map[string]int64{"all-reduce, slice: 16KiB": 3 * (1 + 4*2), "all-to-all": 3} {
		b := newBench(t, 3, 1, 1)
		var asked, bytes atomic.Int64
		b.cfg.Step = func(nic topo.PortRef, gpu, n int) time.Duration {
			if nic.Node != "h2" || gpu != 0 {
				return 0
			}
			asked.Add(1)
			bytes.Add(int64(n))
			return 2 * time.Millisecond
		}
		res := b.pass(fmt.Sprintf("[{name: w, kind: %s, size: 96KiB, messages: 3}]", kind))
		if n := asked.Load(); n != steps || res.Duration < time.Duration(n)*2*time.Millisecond || bytes.Load() == 0 {
			t.Errorf("%s: %d steps over %d bytes in %v", kind, n, bytes.Load(), res.Duration)
		}
	}
}
