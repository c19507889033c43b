package testbed

import (
	"strings"
	"testing"

	"github.com/rocebed/rocebed/topo"
)

func TestCapturesThatCannotBeTakenAreRefusedBeforeTheRun(t *testing.T) {
	s, err := Load("../scenarios/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ref := func(text string) topo.PortRef {
		node, port, _ := strings.Cut(text, ":")
		return topo.PortRef{Node: node, Port: port}
	}
	for _, c := range []struct{ ports, want string }{
		{"leaf1:eth0 h1:eth0", ""},
		{"leaf1:eth99", "no such port"},
		{"h1:eth0 leaf1:eth0 h1:eth0", "already"},
	} {
		var ports []topo.PortRef
		for _, p := range strings.Fields(c.ports) {
			ports = append(ports, ref(p))
		}
		err := checkCaptures(s, ports)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.ports, err)
		}
	}
}
