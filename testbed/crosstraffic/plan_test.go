package crosstraffic

import (
	"math"
	"testing"
	"time"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
	"github.com/rocebed/rocebed/workloads"
)

func ground(t *testing.T) Ground {
	t.Helper()
	var spec struct {
		Topology topo.Spec `yaml:"topology"`
	}
	if err := strict.Decode("t.yaml", []byte("topology: {spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 2}}"), &spec); err != nil {
		t.Fatal(err)
	}
	top, err := spec.Topology.Build()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := top.Plan(spec.Topology.PlanOptions())
	if err != nil {
		t.Fatal(err)
	}
	return Ground{Plan: plan}
}

func TestABurstComesToItsBytesFromEachSenderWhateverItIsCutInto(t *testing.T) {
	for _, c := range []struct {
		bytes, size topo.Bytes
		streams     int
		receivers   int
	}{
		{1, 0, 1, 1}, {1_000_000, 0, 1, 1}, {1_000_000, 0, 3, 2}, {65536, 0, 1, 1}, {65537, 0, 1, 1}, {4_000_000, 4096, 2, 1}, {10, 4096, 1, 1},
	} {
		spec := faults.Spec{Kind: faults.RoCEBurst, TrafficKeys: faults.TrafficKeys{Bytes: c.bytes, Size: c.size, Streams: c.streams}}
		size, n := amount(&spec, c.receivers)
		all := size * uint64(n*c.receivers*c.streams)
		spare := size * uint64(c.receivers*c.streams)
		if all < uint64(c.bytes) || c.size != 0 && all >= uint64(c.bytes)+spare || c.size == 0 && all >= uint64(c.bytes)+uint64((n+1)*c.receivers*c.streams) || size > message && c.size == 0 {
			t.Errorf("%d bytes in %d streams to %d: %d messages of %d each, %d bytes", c.bytes, c.streams, c.receivers, n, size, all)
		}
	}
}

func TestWhatAFaultSaysIsWhatItsWorkloadsDo(t *testing.T) {
	g := ground(t)
	dscp := uint8(8)
	spec := faults.Spec{Name: "x", Kind: faults.IncastBurst, At: []string{"h1", "h2", "h4"}, TrafficKeys: faults.TrafficKeys{To: []string{"h4:eth0"}, Bytes: 1_000_000, DSCP: &dscp}}
	spec.Period = time.Millisecond
	pairs, err := g.pairs(&spec)
	if err != nil || len(pairs) != 2 || pairs[0].from.Node != "h1" || pairs[1].from.Node != "h2" || pairs[1].to.Node != "h4" {
		t.Fatalf("pairs %v, %v; want h1 and h2 to h4", pairs, err)
	}
	all, pace := programs(&spec, pairs)
	if len(all) != 2 || pace != (workloads.Pace{Period: time.Millisecond, Burst: 16}) {
		t.Fatalf("%d workloads, %+v", len(all), pace)
	}
	if w := all[1]; w.Kind != workloads.Write || w.Size != 62500 || w.Messages != math.MaxInt || *w.QP.TrafficClass != 8<<2|2 || w.Verified() {
		t.Errorf("h2 runs %+v", w)
	}
	if err := workloads.CheckAll(all, g.Plan.Topology); err != nil {
		t.Error(err)
	}
}
