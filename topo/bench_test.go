package topo

import "testing"

// The fabrics of a thousand hosts that the plan must manage in under 100 ms.
func BenchmarkPlan1024Hosts(b *testing.B) {
	for _, f := range []struct {
		name string
		spec Spec
	}{
		{"spine-leaf", Spec{SpineLeaf: &SpineLeaf{Spines: 16, Leaves: 32, HostsPerLeaf: 32}}},
		{"fat-tree", Spec{FatTree: &FatTree{K: 16}}},
		{"rail-optimised", Spec{RailOptimised: &RailOptimised{Groups: 32, HostsPerGroup: 32, Rails: 8, Spines: 32}}},
	} {
		b.Run(f.name, func(b *testing.B) {
			top, err := f.spec.Build()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := top.Plan(PlanOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(f.name+"/with every node's routes", func(b *testing.B) {
			for b.Loop() {
				top, err := f.spec.Build()
				if err != nil {
					b.Fatal(err)
				}
				p, err := top.Plan(PlanOptions{})
				if err != nil {
					b.Fatal(err)
				}
				routes := 0
				for i := range top.Nodes {
					routes += len(p.Routes(top.Nodes[i].Name))
				}
				b.ReportMetric(float64(routes), "routes")
			}
		})
	}
}
