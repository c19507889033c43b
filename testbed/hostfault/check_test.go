package hostfault

import (
	"strings"
	"testing"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

func TestWhatCannotBeIsRefusedBeforeThereIsAFabric(t *testing.T) {
	spec := topo.Spec{}
	if err := strict.Decode("t", []byte("{spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 2}, override: [{node: h2, kind: soft-host}]}"), &spec); err != nil {
		t.Fatal(err)
	}
	top, err := spec.Build()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := top.Plan(spec.PlanOptions())
	if err != nil {
		t.Fatal(err)
	}
	in := New(Config{Plan: plan, Seed: 1, NICs: fabric.NICSettings{Override: []fabric.NICOverride{{Node: "h3", NICModel: fabric.NICModel{Process: true}}}}})
	taken, _ := plan.Port(topo.PortRef{Node: "h4", Port: "eth0"})
	for text, want := range map[string]string{
		"{kind: rnr, at: ['h1:eth0']}":                                                 "",
		"{kind: process-kill, at: [h1]}":                                               "",
		"{kind: nic-reset, at: ['h1:eth0'], down: 1ms}":                                "",
		"{kind: gpu-straggler, at: [h1], gpus: [0], delay: 1us}":                       "",
		"{kind: gpu-straggler, at: [h1], gpus: [7], delay: 1us}":                       "h1 has no GPU 7",
		"{kind: wrong-gid, at: ['h1:eth0']}":                                           "",
		"{kind: wrong-gid, at: ['h2:eth0']}":                                           "among the kernel's nodes",
		"{kind: wrong-gid, at: ['h1:eth0'], addr: '2001:db8::7'}":                      "another family",
		"{kind: wrong-gid, at: ['h1:eth0'], addr: " + taken.Addr.Addr().String() + "}": "h4:eth0 has that address",
		"{kind: slow-clock, at: [h1], speed: 90%}":                                     "",
		"{kind: slow-clock, at: [h3], speed: 90%}":                                     "leave out nics.process",
		"{kind: loss, at: ['h1:eth0'], probability: 1%}":                               "hosts have no fault of kind",
	} {
		var s faults.Spec
		if err := strict.Decode("t", []byte("{name: x, "+text[1:]), &s); err != nil {
			t.Fatal(err)
		}
		switch err := in.Check(s); {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
