//go:build linux

package tc

import (
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/testbed/kernel/nl"
	"github.com/rocebed/rocebed/topo"
)

var update = flag.Bool("update", false, "write the golden messages anew")

// port is a switch port at 97.65625 Mb/s with a marker.
func port() Port {
	return Port{Rate: 97656248, MTU: 4200, Priorities: []Priority{{Limit: 2 << 20, Marker: &Marker{Kmin: 20000, Kmax: 60000, Pmax: 0.01}}}}
}

// The golden messages are what Linux 7.3.4 has taken and reported back unchanged: the tests that
// need rxe make these trees in the guest and verify them.
func TestMessagesAreThoseThatTheKernelTook(t *testing.T) {
	for name, ops := range map[string][]Op{
		"port":       Diff(nil, port().Tree()),
		"priorities": Diff(nil, Port{Rate: 40 * topo.Gbps, MTU: 1500, Priorities: []Priority{{Limit: 1 << 20}, {Limit: 1 << 21}}}.Tree()),
		"delay":      {{Add, Object{ID: 1 << 16, Parent: Root, Spec: Netem{Delay: 1024 * time.Microsecond}}}},
		"jitter":     {{Change, Object{ID: 1 << 16, Parent: Root, Spec: Netem{Delay: time.Second, Jitter: 3 * time.Millisecond, Distribution: "normal"}}}},
		"delete":     {{Delete, Object{ID: 1 << 16, Parent: Root, Spec: HTB{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			var b nl.Batch
			for _, op := range ops {
				AppendOp(&b, 100, op, "leaf1:eth0")
			}
			got := hex.Dump(b.Bytes())
			path := filepath.Join("testdata", name+".hex")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the messages %q are not the recorded ones:\n%s", b.Labels(), firstDifference(got, string(want)))
			}
		})
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return "got  " + g[i] + "\nwant " + w[i]
		}
	}
	return "one is longer"
}
