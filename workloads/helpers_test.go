package workloads

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

func TestMain(m *testing.M) { testleak.Main(m) }

// star is hosts h1…hn with some NICs and GPUs each, on one switch.
func star(hosts, nics, gpus int) *topo.Topology {
	t := &topo.Topology{Name: "star"}
	sw := topo.Node{Name: "leaf1", Role: topo.Switch, Tier: 1}
	for h := range hosts {
		n := topo.Node{Name: fmt.Sprintf("h%d", h+1), Role: topo.Host, GPUs: gpus}
		for i := range nics {
			p := topo.Port{Name: fmt.Sprintf("eth%d", i), Rail: i}
			n.Ports = append(n.Ports, p)
			up := topo.Port{Name: fmt.Sprintf("eth%d", len(sw.Ports))}
			sw.Ports = append(sw.Ports, up)
			t.Links = append(t.Links, topo.Link{
				A: topo.PortRef{Node: n.Name, Port: p.Name}, B: topo.PortRef{Node: sw.Name, Port: up.Name},
				Rate: 100 * topo.Gbps, MTU: 4200,
			})
		}
		t.Nodes = append(t.Nodes, n)
	}
	t.Nodes = append(t.Nodes, sw)
	return t
}

// bench is an engine's surroundings in memory.
type bench struct {
	t      testing.TB
	top    *topo.Topology
	net    *memNet
	devs   []*memDevice
	cfg    Config
	mu     sync.Mutex
	events []Event
}

func newBench(t *testing.T, hosts, nics, gpus int) *bench {
	t.Helper()
	epoch := time.Now()
	return benchOn(t, hosts, nics, gpus, func(int) loop.Loop {
		l := loop.NewReal(1, epoch)
		t.Cleanup(l.Close)
		return l
	})
}

// benchOn puts each host on a loop of its own.
func benchOn(t testing.TB, hosts, nics, gpus int, newLoop func(host int) loop.Loop) *bench {
	t.Helper()
	b := &bench{t: t, top: star(hosts, nics, gpus), net: &memNet{devs: map[netip.Addr]*memDevice{}}}
	addr := netip.MustParseAddr("10.0.0.1")
	b.cfg = Config{Topology: b.top, Seed: 42, LookAhead: time.Microsecond, ControlTimeout: 5 * time.Second}
	for i, n := range b.top.Nodes {
		if n.Role != topo.Host {
			continue
		}
		l := newLoop(i)
		for _, p := range n.Ports {
			d := b.net.device(n.Name+p.Name, addr, l)
			b.devs = append(b.devs, d)
			b.cfg.NICs = append(b.cfg.NICs, NIC{Port: topo.PortRef{Node: n.Name, Port: p.Name}, Rail: p.Rail, Device: d, GID: addr})
			addr = addr.Next()
		}
	}
	b.cfg.Observer = func(ev Event) {
		b.mu.Lock()
		b.events = append(b.events, ev)
		b.mu.Unlock()
	}
	return b
}

func specs(t testing.TB, text string) []Spec {
	t.Helper()
	var s struct {
		Workloads []Spec `yaml:"workloads"`
	}
	indented := strings.ReplaceAll(text, "\n", "\n  ")
	if err := strict.Decode("workloads.yaml", []byte("workloads: "+indented), &s); err != nil {
		t.Fatalf("decode: %v", err)
	}
	return s.Workloads
}

// start builds the engine and starts it.
func (b *bench) start(text string) (*Engine, <-chan *Report) {
	b.t.Helper()
	e, err := NewEngine(b.cfg, specs(b.t, text))
	if err != nil {
		b.t.Fatalf("new engine: %v", err)
	}
	done := make(chan *Report, 1)
	e.Start(func(r *Report) { done <- r })
	return e, done
}

func (b *bench) wait(done <-chan *Report) *Report {
	b.t.Helper()
	select {
	case r := <-done:
		for _, d := range b.devs {
			live := make(chan int, 1)
			d.l.Post(func() { live <- d.live })
			if n := <-live; n != 0 {
				b.t.Errorf("%s has %d objects left", d.name, n)
			}
		}
		return r
	case <-time.After(30 * time.Second):
		b.mu.Lock()
		defer b.mu.Unlock()
		b.t.Fatalf("no report after 30 s; events so far: %s", kindsOf(b.events))
		return nil
	}
}

func (b *bench) run(text string) *Report {
	b.t.Helper()
	_, done := b.start(text)
	return b.wait(done)
}

// pass runs workloads that must pass, and returns the only one's result.
func (b *bench) pass(text string) *Result {
	b.t.Helper()
	r := b.run(text)
	if r.Err != nil {
		b.t.Fatalf("engine: %v", r.Err)
	}
	for _, w := range r.Results {
		if !w.Passed {
			b.t.Errorf("workload %s failed: %s", w.Name, w.Failure)
		}
	}
	return r.Results[0]
}

func kindsOf(events []Event) string {
	var out []string
	for _, e := range events {
		out = append(out, fmt.Sprintf("%s(%s %s %s)", e.Kind, e.Workload, e.Flow, e.Text))
	}
	return strings.Join(out, " ")
}
