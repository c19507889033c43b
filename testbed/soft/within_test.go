//go:build linux

package soft

import (
	"context"
	"testing"
	"time"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads"
)

// part makes the soft nodes of a star in which the host "far" is somebody else's.
func part(t *testing.T) *Fabric {
	t.Helper()
	plan := starPlan(t, 3, topo.LinkSettings{MTU: 4200, Rate: 10 * topo.Gbps, Delay: new(5 * time.Second)})
	for i := range plan.Topology.Nodes {
		n := &plan.Topology.Nodes[i]
		switch {
		case n.Role == topo.Switch:
			n.Kind = topo.SoftSwitch
		case n.Name == "h3":
			n.Kind = topo.RxeHost
		default:
			n.Kind = topo.SoftHost
		}
	}
	w := wiredBare(t, plan)
	f, err := Build(t.Context(), Config{Plan: plan, Dilation: 1, Seed: 1, Within: &Within{Wiring: w, Epoch: time.Now()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if w.Node("h1") == nil {
			t.Error("the wiring, which is somebody else's, is gone")
		}
	})
	return f
}

func TestSoftNodesOfAFabricAreThoseOfTheirKindsAndAddNoDelayOfLinks(t *testing.T) {
	f := part(t)
	if f.Host("h3") != nil || f.Kind("h3") != "" || f.Kind("leaf1") != topo.SoftSwitch || len(f.Hosts()) != 2 {
		t.Errorf("h3 is %q, leaf1 is %q, there are %d hosts", f.Kind("h3"), f.Kind("leaf1"), len(f.Hosts()))
	}
	// Links that delay by 5 s: the wiring would, if it were what it stands for.
	begun := time.Now()
	drive(t, f, workloads.Spec{Name: "w", Kind: workloads.Write, From: []string{"h1"}, To: []string{"h2"}, Size: 64 << 10, Messages: 20, QP: workloads.QPSpec{Timeout: &longTimeout}})
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("20 WRITEs took %v", took)
	}
	if n := metric(t, f, "if_rx_packets"); n < 20*16 {
		t.Errorf("only %v packets came in anywhere", n)
	}
}

func TestSoftNodesOfAFabricDoWhatItsFaultsAskOfThem(t *testing.T) {
	f := part(t)
	ref := topo.PortRef{Node: "h1", Port: "eth0"}
	before, err := f.Sent(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.SetRate(ref, topo.Gbps); err != nil {
		t.Fatal(err)
	}
	if r, err := f.Rate(ref); err != nil || r != topo.Gbps {
		t.Errorf("the rate is %v, %v", r, err)
	}
	// A port that has no carrier sends nothing, so that there is nothing for the kernel to refuse.
	if err := f.SetCarrier(ref, false); err != nil {
		t.Fatal(err)
	}
	setLink(t, f, ref, false)
	try, once := 10, 1
	spec := workloads.Spec{Name: "cut", Kind: workloads.Write, From: []string{"h1"}, To: []string{"h2"}, Size: 4 << 10, Messages: 5, ExpectError: "RETRY_EXC_ERR", QP: workloads.QPSpec{Timeout: &try, RetryCnt: &once}}
	drive(t, f, spec)
	setLink(t, f, ref, true)
	if err := f.SetCarrier(ref, true); err != nil {
		t.Fatal(err)
	}
	drive(t, f, workloads.Spec{Name: "mended", Kind: workloads.Write, From: []string{"h1"}, To: []string{"h2"}, Size: 4 << 10, Messages: 5, QP: workloads.QPSpec{Timeout: &longTimeout}})
	if n := metric(t, f, "socket_refused"); n != 0 {
		t.Errorf("the kernel refused %v frames", n)
	}
	if now, err := f.Sent(ref); err != nil || now < before+5 {
		t.Errorf("%d packets were sent before and %d now, %v", before, now, err)
	}
	if _, err := f.Rate(topo.PortRef{Node: "h3", Port: "eth0"}); err == nil {
		t.Error("a port of another's has a rate")
	}
	if err := f.SetLink(0, false); err != nil {
		t.Error(err)
	}
	if err := f.SetLink(0, true); err != nil {
		t.Error(err)
	}
}

// setLink sets a port's interface down or up, as whoever has the links does.
func setLink(t *testing.T, f *Fabric, ref topo.PortRef, up bool) {
	t.Helper()
	ns, l, ok := f.Wiring().Link(ref)
	if !ok {
		t.Fatalf("%s: no such port", ref)
	}
	handle, err := ns.Handle()
	if err != nil {
		t.Fatal(err)
	}
	dev, err := handle.LinkByIndex(l.Index)
	if err != nil {
		t.Fatal(err)
	}
	set := handle.LinkSetDown
	if up {
		set = handle.LinkSetUp
	}
	if err := set(dev); err != nil {
		t.Fatal(err)
	}
}
