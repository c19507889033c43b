package testbed

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads"
)

// still is a fabric that has time and nothing else.
type still struct {
	fabric.Fabric
	epoch time.Time
}

func (s still) Dilation() loop.Dilation   { return 1 }
func (s still) Epoch() time.Time          { return s.epoch }
func (s still) JudgeKeepUp() error        { return nil }
func (s still) Injector() fabric.Injector { return nil }
func (s still) Hosts() []fabric.Host      { return nil }
func (s still) Plan() *topo.Plan          { return nil }

func TestWhatHappensBeforeTheWorkloadsStartHasANegativeTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	rec, err := record.Create(dir, record.Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	r := &run{s: &Scenario{Workloads: make([]workloads.Spec, 1)}, rec: rec, opt: RunOptions{Progress: Silent{}}}
	tr := newTraffic(r, still{epoch: time.Now()})

	tr.s = newSampler(r, tr.fab, tr.time)
	tr.faults.loop, tr.faults.changed = tr.time.loop(), func() {}
	r.problem("nothing to count")
	tr.observe(workloads.Event{At: 100, Kind: workloads.EventError, Workload: "a", Text: "no memory"})
	tr.observe(workloads.Event{At: 400, Kind: workloads.EventReady})
	tr.observe(workloads.Event{At: 900, Kind: workloads.EventFinished, Workload: "a"})
	var running time.Duration
	if err := tr.time.do(context.Background(), func() { running = tr.time.loop().Now().Sub(tr.zero) }); err != nil {
		t.Fatal(err)
	}
	r.problem("it ran badly")
	tr.time.close()
	r.problem("the fabric is stuck")
	rec.Abandon()

	rd, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	events, err := rd.Events()
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(events, func(e record.Event) bool { return e.What == "started" }); i < 0 || fmt.Sprint(events[i].Data) != "map[fabric_ns:400]" {
		t.Errorf("the start doesn't say when it was in the fabric's time: %v", events)
	}
	at := map[string]time.Duration{}
	for _, e := range events {
		at[e.What+" "+e.Text] = e.At
	}
	for what, want := range map[string]time.Duration{
		"error no memory": -300, "started ": 0, "finished ": 500, "problem nothing to count": 0,
	} {
		if got, ok := at[what]; !ok || got != want {
			t.Errorf("%q is at %v (there: %v), want %v", what, got, ok, want)
		}
	}
	during, after := at["problem it ran badly"], at["problem the fabric is stuck"]
	if during < running || after < during || after > time.Hour {
		t.Errorf("problems while the workloads run and after it are at %v and %v, want at least %v", during, after, running)
	}
}
