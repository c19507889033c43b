package workloads

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

func TestNonsenseIsRefusedByKey(t *testing.T) {
	const ok = "name: w, kind: write, from: [h1], to: [h2], messages: 1"
	for spec, want := range map[string]string{
		"kind: write, from: [h1], to: [h2], messages: 1":                                         "name",
		"name: w, kind: wirte, from: [h1], to: [h2], messages: 1":                                "kind",
		"name: w, kind: write, from: [h1], to: [h2]":                                             "messages",
		ok + ", duration: 1ms":                                                                   "messages",
		ok + ", warm_up: 1ms":                                                                    "warm_up",
		"name: w, kind: write, from: [h1], to: [h2], duration: 1ms, warm_up: 1ms":                "warm_up",
		"name: w, kind: write, from: [h1], to: [h2], duration: 2ms, warm_up: 1ms, transport: uc": "warm_up",
		"name: w, kind: all-reduce, duration: 2ms, warm_up: 1ms":                                 "warm_up",
		ok + ", op: read":                        "op",
		ok + ", ranks: [h1]":                     "ranks",
		ok + ", slice: 4KiB":                     "slice",
		ok + ", data_type: int32":                "data_type",
		ok + ", atomic: cmp_swap":                "atomic",
		ok + ", receive_delay: 1ms":              "receive_delay",
		ok + ", mode: fast":                      "mode",
		ok + ", mode: latency, depth: 4":         "depth",
		ok + ", transport: ud":                   "transport",
		ok + ", transport: rd":                   "transport",
		ok + ", signaling: none":                 "signaling",
		ok + ", qps: 2000":                       "qps",
		ok + ", depth: -1":                       "depth",
		ok + ", depth: 4000, size: 4MiB":         "depth",
		ok + ", size: 3GiB, depth: 1":            "size",
		ok + ", expect_error: retries-exceeded":  "expect_error",
		ok + ", qp: {timeout: 32}":               "qp.timeout",
		ok + ", qp: {retry_cnt: 8}":              "qp.retry_cnt",
		ok + ", qp: {rnr_retry: 8}":              "qp.rnr_retry",
		ok + ", qp: {min_rnr_timer: 32}":         "qp.min_rnr_timer",
		ok + ", qp: {mtu: 1500}":                 "qp.mtu",
		ok + ", qp: {max_rd_atomic: 300}":        "qp.max_rd_atomic",
		ok + ", qp: {traffic_class: 256}":        "qp.traffic_class",
		ok + ", qp: {flow_label: 1048576}":       "qp.flow_label",
		ok + ", transport: uc, qp: {timeout: 3}": "qp.timeout",
		ok + ", after: w":                        "after",
		ok + ", pairing: both":                   "pairing",
		"name: w, kind: read, transport: uc, from: [h1], to: [h2], messages: 1":                     "transport",
		"name: w, kind: send, transport: ud, from: [h1], to: [h2], messages: 1, size: 8KiB":         "size",
		"name: w, kind: send, transport: ud, from: [h1], to: [h2], messages: 1, receive_delay: 1ms": "receive_delay",
		"name: w, kind: atomic, from: [h1], to: [h2], messages: 1, size: 4B":                        "size",
		"name: w, kind: write, from: [h9], to: [h2], messages: 1":                                   "from",
		"name: w, kind: write, from: ['h1:eth7'], to: [h2], messages: 1":                            "from",
		"name: w, kind: write, from: [leaf1], to: [h2], messages: 1":                                "from",
		"name: w, kind: write, from: [h1], to: ['['], messages: 1":                                  "to",
		"name: w, kind: write, from: [h1], messages: 1":                                             "to",
		"name: w, kind: write, from: [h1], to: [h1], messages: 1":                                   "to",
		"name: w, kind: write, from: [h1, h2, h3], to: [h4, h5], messages: 1":                       "pairing",
		"name: w, kind: write, from: [h1, h2], to: [h2, h1, h3], messages: 1, pairing: zip":         "pairing",
		"name: w, kind: write, from: [h1, h2], to: [h3, h2], messages: 1":                           "to",
		"name: w, kind: incast, from: ['*'], to: [h1, h2], messages: 1":                             "to",
		"name: w, kind: incast, from: [h1], to: [h1], messages: 1":                                  "from",
		"name: w, kind: all-pairs, from: [h1], messages: 1":                                         "from",
		"name: w, kind: all-pairs, to: [h1], messages: 1":                                           "to",
		"name: w, kind: all-reduce, ranks: [h1], messages: 1":                                       "ranks",
		"name: w, kind: all-reduce, ranks: ['h1:gpu5', h2], messages: 1":                            "ranks",
		"name: w, kind: all-reduce, messages: 1, size: 1001B":                                       "size",
		"name: w, kind: all-reduce, messages: 1, size: 8B":                                          "size",
		"name: w, kind: all-reduce, messages: 1, slice: 6B":                                         "slice",
		"name: w, kind: all-reduce, bytes: 1MiB":                                                    "bytes",
		"name: w, kind: all-to-all, messages: 1, size: 1001B":                                       "size",
		"name: w, kind: all-to-all, messages: 1, data_type: int32":                                  "data_type",
	} {
		err := Check(specs(t, "[{"+spec+"}]")[0], star(6, 1, 1))
		if err == nil {
			t.Errorf("{%s} passes, want a problem of %s", spec, want)
			continue
		}
		if paths := pathsOf(err); !slices.Contains(paths, want) {
			t.Errorf("{%s}: problems of %v, want one of %s: %v", spec, paths, want, err)
		}
	}
}

func TestSenseIsNotRefused(t *testing.T) {
	for _, spec := range []string{
		"name: w, kind: write, from: [h1], to: [h2], bytes: 1MiB",
		"name: w, kind: write, from: ['h[123]'], to: ['h[456]:eth0'], messages: 1",
		"name: w, kind: write, from: [h1], to: ['*'], messages: 1",
		"name: w, kind: write, from: [h1, h2], to: ['*'], pairing: cross, duration: 1ms",
		"name: w, kind: incast, op: atomic, atomic: fetch_add, from: ['*'], to: [h1], messages: 1",
		"name: w, kind: all-pairs, op: send, transport: ud, messages: 1",
		"name: w, kind: all-reduce, data_type: float32, qps: 2, duration: 1ms",
		"name: w, kind: all-to-all, size: 24KB, messages: 1",
		"name: w, kind: write, from: [h1], to: [h2], messages: 1, expect_error: RETRY_EXC_ERR",
		"name: w, kind: write, from: [h1], to: [h2], messages: 1, qp: {timeout: 0, retry_cnt: 0, rnr_retry: 0, min_rnr_timer: 0, traffic_class: 0}",
	} {
		if err := Check(specs(t, "[{"+spec+"}]")[0], star(6, 1, 1)); err != nil {
			t.Errorf("{%s}: %v", spec, err)
		}
	}
}

func TestWorkloadsThatNameEachOtherAreCheckedTogether(t *testing.T) {
	const w = "kind: write, from: [h1], to: [h2], messages: 1"
	for text, want := range map[string]string{
		"[{name: a, " + w + "}, {name: a, " + w + "}]":                                                     "[1].name",
		"[{name: a, " + w + "}, {name: b, after: c, " + w + "}]":                                           "[1].after",
		"[{name: a, after: b, " + w + "}, {name: b, after: a, " + w + "}]":                                 "[0].after",
		"[{name: a, after: c, " + w + "}, {name: b, " + w + ", after: a}, {name: c, after: b, " + w + "}]": "[2].after",
		"[{name: a, " + w + ", op: read}]":                                                                 "[0].op",
	} {
		if paths := pathsOf(CheckAll(specs(t, text), star(2, 1, 1))); !slices.Contains(paths, want) {
			t.Errorf("%s: problems of %v, want one of %s", text, paths, want)
		}
	}
	if err := CheckAll(specs(t, "[{name: a, after: b, "+w+"}, {name: b, "+w+"}, {name: c, after: b, "+w+"}]"), star(2, 1, 1)); err != nil {
		t.Errorf("a chain is refused: %v", err)
	}
}

func TestMisspeltNamesAreSuggested(t *testing.T) {
	for spec, want := range map[string]string{
		"name: w, kind: writ, from: [h1], to: [h2], messages: 1":                               `did you mean "write"`,
		"name: w, kind: write, from: [h1], to: [h2], messages: 1, expect_error: retry-exceded": `did you mean "retry-exceeded"`,
		"name: w, kind: write, from: ['h1:eht0'], to: [h2], messages: 1":                       `did you mean "h1:eth0"`,
		"name: w, kind: all-reduce, ranks: ['h1:gpu0', 'h2:gup0'], messages: 1":                `did you mean "h2:gpu0"`,
	} {
		if err := Check(specs(t, "[{"+spec+"}]")[0], star(6, 1, 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("{%s}: %v, want %s", spec, err, want)
		}
	}
}

func pathsOf(err error) []string {
	var out []string
	var walk func(error)
	walk = func(err error) {
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range many.Unwrap() {
				walk(e)
			}
			return
		}
		var pe *strict.PathError
		if errors.As(err, &pe) {
			out = append(out, pe.Path)
		} else if err != nil {
			out = append(out, "none: "+err.Error())
		}
	}
	walk(err)
	return out
}

func TestFlowsBetweenNICsThatDoNotReachEachOtherAreRefused(t *testing.T) {
	spec := topo.Spec{RailOptimised: &topo.RailOptimised{Groups: 1, HostsPerGroup: 2, Rails: 2}}
	net, err := spec.Build()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := net.Plan(spec.PlanOptions())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Name: "w", Kind: AllReduce, Messages: 1}, "ranks: no route joins h1:eth1 and h2:eth0"},
		{Spec{Name: "w", Kind: AllReduce, Messages: 1, Ranks: []string{"h*:gpu1"}}, ""},
		{Spec{Name: "w", Kind: AllReduce, Messages: 1, Ranks: []string{"h1:gpu0", "h1:gpu1", "h2:gpu1", "h2:gpu0"}}, ""},
		{Spec{Name: "w", Kind: AllToAll, Messages: 1}, "ranks: no route joins h1:eth0 and h2:eth1"},
		{Spec{Name: "w", Kind: AllPairs, Messages: 1}, "from: no route joins h1:eth0 and h2:eth1"},
		{Spec{Name: "w", Kind: Write, Messages: 1, From: []string{"h1"}, To: []string{"h2"}}, ""},
		{Spec{Name: "w", Kind: Write, Messages: 1, From: []string{"h1:eth0"}, To: []string{"h2:eth1"}}, "to: no route joins h1:eth0 and h2:eth1"},
	} {
		err := CheckReach([]Spec{c.spec}, net, plan.Reaches)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v %v %v: %v, want %q", c.spec.Kind, c.spec.From, c.spec.Ranks, err, c.want)
		}
	}
}

func TestMoreQueuePairsThanAMachineHoldsAreRefusedBeforeTheyAreListed(t *testing.T) {
	for spec, want := range map[string]string{
		"kind: all-pairs, messages: 1":                                        "from",
		"kind: write, pairing: cross, messages: 1":                            "to",
		"kind: write, from: [h1], qps: 1024, messages: 1":                     "qps",
		"kind: all-to-all, ranks: ['h1*'], qps: 6, messages: 1, size: 111KiB": "ranks",
		"kind: all-reduce, ranks: ['h1*'], qps: 1024, messages: 1":            "ranks",
	} {
		if strings.Contains(spec, "write") {
			spec += ", to: ['*']"
		}
		err := Check(specs(t, "[{name: w, "+spec+"}]")[0], star(300, 1, 1))
		var at *strict.PathError
		if !errors.As(err, &at) || at.Path != want || !strings.Contains(err.Error(), "at most 65536 queue pairs") {
			t.Errorf("{%s}: %v, want a problem of %s", spec, err, want)
		}
	}
	if err := Check(specs(t, "[{name: w, kind: all-pairs, messages: 1}]")[0], star(256, 1, 1)); err != nil {
		t.Errorf("256 hosts, all pairs: %v", err)
	}
}

func TestADepthThatIsWrongIsSaidOnce(t *testing.T) {
	err := Check(specs(t, "[{name: w, kind: write, from: [h1], to: [h2], messages: 1, depth: -1}]")[0], star(2, 1, 1))
	if err == nil || strings.Contains(err.Error(), "buffers") {
		t.Errorf("%v", err)
	}
}
