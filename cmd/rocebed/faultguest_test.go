//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

func TestFaultsInAGuestComeAndGoAndOneThatWontHealMakesDownFail(t *testing.T) {
	name := fmt.Sprintf("g%d-faults", os.Getpid())
	st := upInGuest(t, name)
	var sw, port string
	for _, n := range st.Nodes {
		for _, p := range n.Ports {
			if n.Role == topo.Switch && strings.HasPrefix(p.Peer, "h1:") {
				sw, port = n.Name, p.Name
			}
		}
	}
	added := faultsIn(t, "add", name, "--kind", "loss", "--fault", "lossy", "--at", "h2:eth0", "--set", "probability=1%")
	if len(added) != 1 || added[0].State != fabric.FaultInForce || !added[0].Verified {
		t.Errorf("added: %+v", added)
	}
	if healed := faultsIn(t, "heal", "--name", name, "lossy"); len(healed) != 1 || healed[0].State != fabric.FaultHealed {
		t.Errorf("healed: %+v", healed)
	}
	if code, _, errs := invoke(t, "fault", "add", name, "--kind", "los", "--at", "h2"); code != 2 || !strings.Contains(errs, `the flags:1:1: "los" is no kind of fault (did you mean "loss"?)`) {
		t.Errorf("a kind that isn't there: exit code %d, stderr %q", code, errs)
	}
	faultsIn(t, "add", name, "--kind", "rate", "--fault", "slow", "--at", sw+":"+port, "--direction", "egress", "--set", "rate=100Mbps")
	if code, _, errs := invoke(t, "exec", "--quiet", "--name", name, sw, "--", "true"); code != 0 {
		t.Errorf("exec: %d, %s", code, errs)
	}
	if b, err := on(name, sw, "ip", "link", "del", port).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	code, _, errs := invoke(t, "down", name)
	if code != exitFailed || !strings.Contains(errs, "healing its faults: ") || !strings.Contains(errs, "fault slow: IT COULD NOT BE HEALED: ") {
		t.Errorf("down: exit code %d, stderr %q", code, errs)
	}
}
