package soak

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/topo"
)

// attempts is how often a part is drawn anew when what came out can't be had: combinations of settings that rocebed refuses.
const attempts = 100

// Scenario is the scenario of a seed, the same each time. check refuses what the backend can't do.
func Scenario(seed uint64, check func(*testbed.Scenario) error) (*testbed.Scenario, error) {
	var last error
	for i := range uint64(attempts) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, i)), seed: seed}
		text, err := g.scenario()
		if err != nil {
			last = err
			continue
		}
		s, err := testbed.Parse(fmt.Sprintf("soak-%d.yaml", seed), []byte(text))
		if err == nil {
			err = check(s)
		}
		if err == nil {
			return s, nil
		}
		last = fmt.Errorf("%w\n%s", err, text)
	}
	return nil, fmt.Errorf("seed %d: %d scenarios were refused, the last: %w", seed, attempts, last)
}

// generator draws the parts of a scenario.
type generator struct {
	*rand.Rand
	seed uint64
	t    *topo.Topology
	text strings.Builder
}

func (g *generator) line(format string, args ...any) { fmt.Fprintf(&g.text, format+"\n", args...) }

// one draws one of these.
func one[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

// chance is true in p of 100.
func (g *generator) chance(p int) bool { return g.IntN(100) < p }

// between draws a whole number from lo to hi.
func (g *generator) between(lo, hi int) int { return lo + g.IntN(hi-lo+1) }

func (g *generator) scenario() (string, error) {
	g.line("apiVersion: rocebed/v1\nname: soak-%d\nseed: %d\nbackend: sim", g.seed, g.seed)
	g.topology()
	s, err := testbed.Parse("topology.yaml", []byte(g.text.String()))
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, g.text.String())
	}
	if g.t = s.Topology; len(g.t.Hosts()) < 2 {
		return "", errors.New("fewer than two hosts")
	}
	g.nics()
	g.switches()
	g.workloads()
	g.faults()
	return g.text.String(), nil
}

func (g *generator) topology() {
	g.line("topology:")
	switch g.IntN(7) {
	case 0:
		g.line("  spine-leaf: {spines: %d, leaves: %d, hosts_per_leaf: %d, links_per_spine: %d}", g.between(1, 3), g.between(1, 3), g.between(1, 3), g.between(1, 2))
	case 1:
		g.line("  dumbbell: {left: %d, right: %d}", g.between(1, 4), g.between(1, 4))
	case 2:
		g.line("  star: {hosts: %d}", g.between(2, 7))
	case 3:
		g.line("  parking-lot: {switches: %d, hosts_per_switch: %d}", g.between(2, 4), g.between(1, 2))
	case 4:
		g.line("  ring: {switches: %d, hosts_per_switch: %d, clockwise: %v}", g.between(3, 5), g.between(1, 2), g.chance(50))
	case 5:
		g.line("  fat-tree: {k: %d}", one(g, 2, 4))
	case 6:
		g.line("  rail-optimised: {hosts_per_group: %d, rails: 2, groups: %d, spines: %d}", g.between(1, 2), g.between(1, 2), g.between(1, 2))
	}
	g.line("  rate: %s", one(g, "1Gbps", "10Gbps", "25Gbps", "40Gbps", "100Gbps", "400Gbps"))
	g.line("  delay: %s", one(g, "100ns", "500ns", "1us", "1us", "3us", "10us"))
	g.line("  mtu: %d", one(g, 400, 600, 1200, 2200, 4200, 4200, 9000))
	if g.chance(30) {
		g.line("  addresses: ipv6")
	}
	if g.chance(30) {
		g.line("  tiers: {host: {delay: %s, rate: %s}}", one(g, "200ns", "700ns", "2us"), one(g, "10Gbps", "50Gbps", "100Gbps"))
	}
	if !strings.Contains(g.text.String(), "rail-optimised") && g.chance(30) {
		g.line("  hosts: {nics: %d, gpus: %d}", g.between(1, 2), g.between(1, 3))
	}
}

// ports are the ports of switches, by name.
func (g *generator) ports() (names []string) {
	for _, sw := range g.t.Switches() {
		for _, p := range sw.Ports {
			names = append(names, sw.Name+":"+p.Name)
		}
	}
	return names
}

// interfaces are the NICs of hosts, by name.
func (g *generator) interfaces() (names []string) {
	for _, h := range g.t.Hosts() {
		for _, p := range h.Ports {
			names = append(names, h.Name+":"+p.Name)
		}
	}
	return names
}

// some draws k names.
func (g *generator) some(names []string, k int) []string {
	all := append([]string{}, names...)
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(k, len(all))]
}

// list writes names as YAML has them.
func list(names []string) string { return `["` + strings.Join(names, `", "`) + `"]` }
