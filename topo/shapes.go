package topo

import (
	"fmt"

	"github.com/rocebed/rocebed/topo/strict"
)

// SpineLeaf is the two-tier Clos: every leaf has links to every spine, every host hangs on
// one leaf with all its NICs.
//
//	spine1    spine2
//	 | \  \  /  / |
//	leaf1  leaf2  leaf3
//	|  |   |  |   |  |
//	h1 h2  h3 h4  h5 h6
type SpineLeaf struct {
	Spines        int `yaml:"spines,required"`
	Leaves        int `yaml:"leaves,required"`
	HostsPerLeaf  int `yaml:"hosts_per_leaf,required"`
	LinksPerSpine int `yaml:"links_per_spine,nonzero"` // parallel links from a leaf to each spine, default 1
	// Oversubscription sets the rate of the links to the spines, which default to the hosts'
	// rate: at 2:1 a leaf's hosts can send twice what its uplinks carry.
	Oversubscription Ratio `yaml:"oversubscription"`
}

// shape is what makes a topology: it says what it can't make, how much it will make, and makes it.
type shape interface {
	check() []error
	size() (nodes, links float64) // of hosts with one NIC
	build(b *builder)
}

func (s *SpineLeaf) check() []error {
	return checkCounts(count{"spines", s.Spines, 1}, count{"leaves", s.Leaves, 1}, count{"hosts_per_leaf", s.HostsPerLeaf, 0}, count{"links_per_spine", s.LinksPerSpine, 0})
}

func (s *SpineLeaf) size() (nodes, links float64) {
	sp, l, h, m := float64(s.Spines), float64(s.Leaves), float64(s.HostsPerLeaf), float64(max(1, s.LinksPerSpine))
	return sp + l + l*h, l*h + l*sp*m
}

func (s *SpineLeaf) build(b *builder) {
	uplinks := s.Spines * max(1, s.LinksPerSpine)
	if s.Oversubscription > 0 {
		b.oversubscribe(1, s.HostsPerLeaf*b.nics(), uplinks, s.Oversubscription)
	}
	for i := range s.Spines {
		b.sw(numbered("spine", i), 2)
	}
	for i := range s.Leaves {
		b.sw(numbered("leaf", i), 1)
	}
	for i := range s.Leaves {
		b.hosts(s.HostsPerLeaf, numbered("leaf", i))
	}
	for i := range s.Leaves {
		for j := range s.Spines {
			for range max(1, s.LinksPerSpine) {
				b.link(numbered("leaf", i), numbered("spine", j), 0)
			}
		}
	}
}

// oversubscribe sets the rate that a tier's uplinks have unless the scenario gives one.
func (b *builder) oversubscribe(tier Tier, downlinks, uplinks int, r Ratio) {
	down := firstRate(b.spec.Tiers.Host.Rate, b.spec.Rate, defaultRate)
	if downlinks > 0 && uplinks > 0 {
		b.rate[tier] = max(1, Rate(float64(down)*float64(downlinks)/float64(uplinks)/float64(r)))
	}
}

func firstRate(rates ...Rate) Rate {
	for _, r := range rates {
		if r != 0 {
			return r
		}
	}
	return 0
}

func numbered(word string, i int) string { return fmt.Sprintf("%s%d", word, i+1) }

// count is a whole-number parameter with its least value.
type count struct {
	key   string
	value int
	least int
}

func checkCounts(counts ...count) []error {
	var errs []error
	for _, c := range counts {
		if c.value < c.least {
			errs = append(errs, strict.At(c.key, "%s: %d is less than %d", c.key, c.value, c.least))
		} else if c.value > MaxNodes {
			errs = append(errs, strict.At(c.key, "%s: %d is more than %d", c.key, c.value, MaxNodes))
		}
	}
	return errs
}
