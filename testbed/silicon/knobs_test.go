package silicon

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// lab is a fabric of two leaves and two spines without time of its own: all nodes on one loop, the injector on another.
type lab struct {
	t        *testing.T
	v        *loop.Virtual
	plan     *topo.Plan
	switches map[string]*Switch
	in       *Injector
}

func newLab(t *testing.T, switches fabric.SwitchModel) *lab {
	t.Helper()
	top, err := (&topo.Spec{SpineLeaf: &topo.SpineLeaf{Spines: 2, Leaves: 2, HostsPerLeaf: 1}}).Build()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := top.Plan(topo.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, v: loop.NewVirtual(time.Microsecond), plan: plan, switches: map[string]*Switch{}}
	cfg := Config{Plan: plan, Seed: 1, Dilation: 1, Settings: fabric.Settings{Switches: fabric.SwitchSettings{SwitchModel: switches}}}
	m := NewMaker(cfg, nil)
	ports := map[topo.PortRef]*Port{}
	g := Ground{Loop: l.v.Node(1), Frames: &link.Pool{}, Wire: func(*topo.PlanPort) (link.Wire, error) { return &far{}, nil }}
	for i := range top.Nodes {
		n := &top.Nodes[i]
		var made []*Port
		if n.Role == topo.Switch {
			s, err := m.Switch(n, g)
			if err != nil {
				t.Fatal(err)
			}
			l.switches[n.Name], made = s, s.Ports
		} else {
			h, err := m.Host(n, g)
			if err != nil {
				t.Fatal(err)
			}
			made = h.Ports
		}
		for _, p := range made {
			ports[p.Ref] = p
		}
	}
	l.in = NewInjector(cfg, l.v.Node(0), func(p topo.PortRef) *Port { return ports[p] }, NewRouting(plan, l.switches))
	return l
}

func (l *lab) run() { l.v.RunUntil(l.v.Now() + loop.Time(10*time.Microsecond)) }

// spec reads a fault.
func spec(t *testing.T, text string) faults.Spec {
	t.Helper()
	var s faults.Spec
	if err := strict.Decode("test", []byte("{name: it, "+text+"}"), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// apply puts a fault in force and verifies it.
func (l *lab) apply(text string) fabric.Applied {
	l.t.Helper()
	s := spec(l.t, text)
	if err := l.in.Possible(s); err != nil {
		l.t.Fatalf("%s: %v", text, err)
	}
	var a fabric.Applied
	var errs []error
	l.v.Node(0).Post(func() {
		l.in.Apply(s, func(got fabric.Applied, err error) {
			a, errs = got, append(errs, err)
			if a != nil {
				a.Verify(func(err error) { errs = append(errs, err) })
			}
		})
	})
	l.run()
	if len(errs) != 2 || errs[0] != nil || errs[1] != nil {
		l.t.Fatalf("%s: %v", text, errs)
	}
	return a
}

// heal ends a fault and verifies that, and gives its hits.
func (l *lab) heal(a fabric.Applied) (hits uint64) {
	l.t.Helper()
	answers := 0
	check := func(err error) {
		if answers++; err != nil {
			l.t.Error(err)
		}
	}
	a.Heal(func(err error) {
		check(err)
		a.Hits(func(n uint64, err error) { hits = n; check(err) })
		a.VerifyClean(check)
	})
	l.run()
	if answers != 3 {
		l.t.Fatalf("%d answers of 3", answers)
	}
	return hits
}

// differences are the paths of what differs in two values.
func differences(path string, a, b reflect.Value) (out []string) {
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			out = append(out, differences(path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))...)
		}
	case reflect.Array:
		for i := range a.Len() {
			out = append(out, differences(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i))...)
		}
	case reflect.Map:
		for _, k := range a.MapKeys() {
			out = append(out, differences(fmt.Sprintf("%s[%v]", path, k), a.MapIndex(k), b.MapIndex(k))...)
		}
	default:
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			out = append(out, strings.TrimPrefix(path, "."))
		}
	}
	slices.Sort(out)
	return out
}

// changed is what differs now between a switch's settings and those of the scenario.
func (l *lab) changed(node string) []string {
	s := l.switches[node]
	return differences("", reflect.ValueOf(s.base), reflect.ValueOf(s.Settings()))
}

func lossless() fabric.SwitchModel {
	return fabric.SwitchModel{
		Memory: 16 << 20, PFC: &fabric.PFCSettings{}, ECN: &fabric.ECNSettings{KMin: 100_000, KMax: 400_000, PMax: 0.2},
		Watchdog: &fabric.WatchdogSettings{Detect: time.Millisecond},
	}
}

func TestAFaultInASwitchChangesWhatItSaysAndNothingElseAndIsHealed(t *testing.T) {
	for fault, want := range map[string]string{
		"kind: ecn-off, at: ['leaf1:eth1'], priorities: [3]":                                        "Ports[1].Queues[3].ECN Ports[1].Queues[3].Right",
		"kind: ecn-thresholds, at: ['leaf1:eth1'], priorities: [3], kmin: 2MB, kmax: 4MB, pmax: 1%": "Ports[1].Queues[3].ECN Ports[1].Queues[3].Right",
		"kind: dscp-map, at: ['leaf1:eth1'], dscp_map: {26: 0, 48: 6}":                              "Ports[1].DSCP[26] Ports[1].Watched",
		"kind: pfc-off, at: ['leaf1:eth1']":                                                         "Ports[1].PFC.Ignore Ports[1].PFC.Obey Ports[1].PFC.ObeyPause Ports[1].PFC.Send",
		"kind: pfc-off, at: ['leaf1:eth1'], half: send":                                             "Ports[1].PFC.Send",
		"kind: pfc-thresholds, at: ['leaf1:eth1'], headroom: 0B":                                    "Ports[1].Groups[3].AutoHeadroom",
		"kind: pfc-thresholds, at: ['leaf1:eth1'], xoff: 50KB, xon: 1KB":                            "Ports[1].Groups[3].Alpha Ports[1].Groups[3].XOFF Ports[1].Groups[3].XONOffset",
		"kind: pfc-thresholds, at: ['leaf1:eth1'], alpha: 1/64":                                     "Ports[1].Groups[3].Alpha",
		"kind: buffer-alpha, at: [leaf1], alpha: 1/64, priorities: [0]":                             "Ports[0].Queues[0].Alpha Ports[1].Queues[0].Alpha Ports[2].Queues[0].Alpha",
		"kind: buffer-shrink, at: [leaf1], buffer: 4MB":                                             "Buffer",
		"kind: watchdog-off, at: [leaf1]":                                                           "Watchdog.Detect",
		"kind: hash-seed, at: [leaf1], hash_seed: 12345":                                            "Balance.HashSeed Balance.RightSeed",
		"kind: route-late, at: [leaf1], delay: 1ms":                                                 "RouteDelay",
		"kind: stuck-queue, at: ['leaf1:eth1'], priorities: [3, 4]":                                 "Ports[1].Stuck",
		"kind: cnp-starved, at: ['leaf1:eth1']":                                                     "Ports[1].Stuck",
		"kind: cnp-starved, at: ['leaf1:eth1'], rate: 1Mbps":                                        "Ports[1].Queues[6].Rate",
	} {
		l := newLab(t, lossless())
		a := l.apply(fault)
		if got := strings.Join(l.changed("leaf1"), " "); got != want {
			t.Errorf("%s changed %s", fault, got)
		}
		if got := l.changed("leaf2"); len(got) > 0 {
			t.Errorf("%s changed another switch's %v", fault, got)
		}
		if hits := l.heal(a); hits != 0 && !strings.Contains(fault, "watchdog") {
			t.Errorf("%s: %d hits without a packet", fault, hits)
		}
		if got := l.changed("leaf1"); len(got) > 0 {
			t.Errorf("%s: healed, %v is left", fault, got)
		}
	}
}

func TestFaultsInOneSwitchHealInAnyOrder(t *testing.T) {
	l := newLab(t, lossless())
	first := l.apply("kind: ecn-off, at: ['leaf1:eth1']")
	second := l.apply("kind: stuck-queue, at: ['leaf1:eth1'], priorities: [3]")
	l.heal(first)
	if got := l.changed("leaf1"); !slices.Equal(got, []string{"Ports[1].Stuck"}) {
		t.Errorf("the second alone is in force, and changed is %v", got)
	}
	l.heal(second)
	if got := l.changed("leaf1"); len(got) > 0 {
		t.Errorf("both healed, %v is left", got)
	}
}

func TestAFaultThatASwitchCanNotHaveOrThatChangesNothingIsRefusedUpFront(t *testing.T) {
	for fault, want := range map[string]string{
		"kind: ecn-off, at: ['leaf1:eth1']":                                 "leaf1: it would change nothing",
		"kind: pfc-thresholds, at: ['leaf1:eth1'], headroom: 0B":            "leaf1: it would change nothing",
		"kind: watchdog-off, at: [leaf1]":                                   "leaf1: it would change nothing",
		"kind: buffer-alpha, at: [leaf1], alpha: 1/64":                      "leaf1: it would change nothing",
		"kind: ecn-thresholds, at: [leaf1], kmin: 1MB, kmax: 2MB, pmax: 1%": "",
		"kind: buffer-shrink, at: [leaf1], buffer: 10KB":                    "",
	} {
		err := newLab(t, fabric.SwitchModel{}).in.Possible(spec(t, fault))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", fault, err, want)
		}
	}
	err := newLab(t, lossless()).in.Possible(spec(t, "kind: buffer-shrink, at: [leaf1], buffer: 10KB"))
	if err == nil || !strings.Contains(err.Error(), "reserves and headroom") {
		t.Errorf("less memory than is set aside: %v", err)
	}
}

func TestASwitchThatHearsLateOfALinkForwardsIntoNothingUntilThenAndCountsIt(t *testing.T) {
	l := newLab(t, fabric.SwitchModel{})
	late := l.apply("kind: route-late, at: ['leaf*'], delay: 100us")
	down := l.apply("kind: down, at: ['leaf1-spine1']")
	hits := func() (n uint64) {
		late.Hits(func(got uint64, err error) { n = got })
		l.run()
		return n
	}
	if n := hits(); n != 0 {
		t.Fatalf("%d changes of routes came at once", n)
	}
	l.v.RunUntil(l.v.Now() + loop.Time(150*time.Microsecond))
	// leaf1's own link, and leaf2's way to leaf1's host.
	if n := hits(); n < 2 {
		t.Errorf("%d changes of routes came late", n)
	}
	l.heal(down)
	if n := l.heal(late); n < 2 {
		t.Errorf("%d hits", n)
	}
}
