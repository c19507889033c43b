package testbed

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/crosstraffic"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo/strict"
)

// crowdedReal is crowded where time is real: kernel sockets and verbs beside a flow. The dilation leaves a busy machine room.
const crowdedReal = `apiVersion: rocebed/v1
name: crowded
dilation: 1024
topology:
  dumbbell: {left: 2, right: 2}
  rate: 10Gbps
workloads:
  - {name: a, kind: write, from: [h1], to: [h3], size: 64KiB, duration: 3ms, depth: 4}
faults:
  - {name: it, schedule: {at: 200us, for: 2ms}, %s}
`

// besideKinds are traffic beside, and at least how many packets of it there must be.
var besideKinds = map[string]int64{
	"kind: roce-burst, at: ['h2:eth0'], to: ['h4:eth0'], bytes: 300KB":                                 75,
	"kind: roce-burst, at: ['h2:eth0'], to: ['h4:eth0'], rate: 1Gbps, size: 4KiB, dscp: 0, streams: 2": 40,
	"kind: incast-burst, at: [h2, h4], to: ['h3:eth0'], bytes: 50KB, period: 1ms":                      50,
	"kind: udp-traffic, at: ['h2:eth0'], to: ['h4:eth0'], rate: 1Gbps, size: 1000, dscp: 8":            100,
	"kind: tcp-traffic, at: ['h2:eth0'], to: ['h4:eth0'], streams: 2, rate: 1Gbps":                     100,
}

// runBeside runs each kind of traffic beside a flow on a backend whose time is real.
func runBeside(t *testing.T, on Backend) {
	for fault, least := range besideKinds {
		t.Run(strings.Fields(fault)[1], func(t *testing.T) {
			out, r := runOn(t, t.Context(), on, strings.Replace(crowdedReal, "%s", fault, 1), RunOptions{AllowSlow: true})
			if !out.Passed() {
				t.Fatalf("%s: problems %q", fault, out.Summary.Problems)
			}
			f, w := out.Summary.Faults[0], out.Summary.Workloads[0]
			t.Logf("%s: %d hits; the workload: %d bytes, %d retries", fault, f.Hits, w.Bytes, w.Retries)
			if f.Hits < least || !f.Verified || !f.Healed {
				t.Errorf("%s: %d hits, verified %v, healed %v; want at least %d", fault, f.Hits, f.Verified, f.Healed, least)
			}
			if w.VerifiedBytes != w.Bytes || w.WrongBytes != 0 || w.Errors != 0 {
				t.Errorf("%s: of the workload's %d bytes %d were verified and %d wrong, with %d errors", fault, w.Bytes, w.VerifiedBytes, w.WrongBytes, w.Errors)
			}
			if strings.Contains(fault, "roce-burst") { // who sends nothing else
				sent, got := total(t, r, "sent_pkts", map[string]string{"node": "h2"}), total(t, r, "rcvd_pkts", map[string]string{"node": "h4"})
				if sent < int(f.Hits) || got < int(f.Hits) {
					t.Errorf("%s: %d hits, and h2 counts %d packets that it sent, h4 %d that it got", fault, f.Hits, sent, got)
				}
			}
			if !strings.Contains(fault, "burst") && w.Retries != 0 {
				t.Errorf("%s: %d retries of RoCE", fault, w.Retries)
			}
			events, err := r.Events()
			if err != nil {
				t.Fatal(err)
			}
			oneLife(t, events)
		})
	}
}

func TestOnSoftNodesTrafficBesideIsTheKernelsAndTheNICs(t *testing.T) {
	testneed.Root(t)
	runBeside(t, Soft)
}

func TestOnSoftNodesHealedTrafficLeavesNoSocket(t *testing.T) {
	testneed.Root(t)
	leavesNothing(t, Soft, func(fabric.Fabric) int { return -1 })
}

// leavesNothing applies and heals each kind of traffic on a living fabric that has no workloads, and looks at what the kernel has
// of it. pairs is how many queue pairs the kernel has; negative: it has none in any case.
func leavesNothing(t *testing.T, on Backend, pairs func(fabric.Fabric) int) {
	t.Helper()
	source, _, _ := strings.Cut(crowdedReal, "workloads:")
	s, err := Parse("test.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	fab, err := Choice{Backend: on, Builder: builders[on]}.build(ctx, s, loop.Dilation(s.Dilation), fmt.Sprintf("crowded-%d", os.Getpid()), Silent{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := fab.Close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}()
	in := crosstraffic.New(fab, s.Seed)
	for fault := range besideKinds {
		var f struct {
			Faults []faults.Spec `yaml:"faults"`
		}
		if err := strict.Decode("fault.yaml", []byte("faults: [{name: it, schedule: {at: 0s}, "+fault+"}]"), &f); err != nil {
			t.Fatal(err)
		}
		spec := f.Faults[0]
		var a fabric.Applied
		wait(t, ctx, "apply", func(done func(error)) {
			in.Apply(spec, func(got fabric.Applied, err error) {
				a = got
				done(err)
			})
		})
		wait(t, ctx, "verify", a.Verify)
		var hits uint64
		for hits < 3 && ctx.Err() == nil {
			wait(t, ctx, "count hits", func(done func(error)) {
				a.Hits(func(n uint64, err error) {
					hits = n
					done(err)
				})
			})
		}
		rdma := strings.Contains(fault, "burst")
		if n, open := pairs(fab), sockets(t, fab, "h2"); rdma && n == 0 || !rdma && open == 0 {
			t.Errorf("%s: while it is in force the kernel has %d queue pairs and %d sockets at h2", fault, n, open)
		}
		wait(t, ctx, "heal", a.Heal)
		wait(t, ctx, "verify clean", a.VerifyClean)
		if n, open := pairs(fab), sockets(t, fab, "h2"); n > 0 || open > 0 {
			t.Errorf("%s: once it is healed the kernel has %d queue pairs and %d sockets at h2", fault, n, open)
		}
		wait(t, ctx, "heal again", a.Heal)
		before := hits
		wait(t, ctx, "count hits again", func(done func(error)) {
			a.Hits(func(n uint64, err error) {
				hits = n
				done(err)
			})
		})
		if hits < before || ctx.Err() != nil {
			t.Errorf("%s: %d hits in force and %d once it was healed (%v)", fault, before, hits, ctx.Err())
		}
		t.Logf("%s: %d hits", fault, hits)
	}
}

// wait waits for an injector's answer.
func wait(t *testing.T, ctx context.Context, what string, ask func(func(error))) {
	t.Helper()
	answer := make(chan error, 1)
	ask(func(err error) { answer <- err })
	select {
	case err := <-answer:
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	case <-ctx.Done():
		t.Fatalf("%s: no answer: %v", what, ctx.Err())
	}
}

// sockets counts TCP and UDP sockets in a node's namespace but for TCP's in TIME_WAIT. RoCE's own UDP socket is none of ours.
func sockets(t *testing.T, f fabric.Fabric, node string) (n int) {
	t.Helper()
	const timeWait, roce = "06", ":12B7"
	err := f.(interface{ Wiring() *linux.Wiring }).Wiring().Node(node).Do(func() error {
		for _, name := range []string{"tcp", "udp"} {
			b, err := os.ReadFile("/proc/thread-self/net/" + name)
			if err != nil {
				return err
			}
			for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
				if w := strings.Fields(line); len(w) > 3 && w[3] != timeWait && !strings.HasSuffix(w[1], roce) {
					n++
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
