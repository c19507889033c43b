package testbed

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/rocebed/rocebed/topo"
)

// keys calls each for every key of a JSON value.
func keys(v any, each func(string)) {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			each(k)
			keys(e, each)
		}
	case []any:
		for _, e := range x {
			keys(e, each)
		}
	}
}

func TestRecordedTopologiesAndPlansSpellTheirKeysAsAllElseDoes(t *testing.T) {
	spec := topo.Spec{RailOptimised: &topo.RailOptimised{HostsPerGroup: 2, Rails: 2, Spines: 2}}
	topology, err := spec.Build()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := topology.Plan(topo.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, v := range []any{topology, planView(plan)} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var back any
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		keys(back, func(k string) { seen[k] = true })
	}
	for _, k := range []string{"nodes", "hash_seed", "delay_ns", "peer_addr", "next_hops", "tables", "source"} {
		if !seen[k] {
			t.Errorf("no key %q", k)
		}
	}
	for k := range seen {
		for _, c := range k {
			if c != '_' && (c < 'a' || c > 'z') {
				t.Errorf("key %q", k)
				break
			}
		}
	}
	b, _ := json.Marshal(topology)
	var back topo.Topology
	if err := json.Unmarshal(b, &back); err != nil || fmt.Sprint(back) != fmt.Sprint(*topology) {
		t.Errorf("it doesn't read back as it was (%v)", err)
	}
}
