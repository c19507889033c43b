// Package graph draws topologies: DOT for Graphviz, Mermaid for Markdown, JSON for programs,
// and SVG for people, laid out by itself. A plan comes in, text goes out; the same plan
// always gives the same text.
package graph

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// Format is what a topology is written as.
type Format string

// The formats.
const (
	DOT     Format = "dot"
	Mermaid Format = "mermaid"
	JSON    Format = "json"
	SVG     Format = "svg"
)

// Formats are all formats, in the order they are spoken of.
var Formats = []Format{DOT, Mermaid, JSON, SVG}

// Write draws the plan's topology.
func Write(w io.Writer, f Format, p *topo.Plan) error {
	switch f {
	case DOT:
		return writeDOT(w, p)
	case Mermaid:
		return writeMermaid(w, p)
	case JSON:
		return writeJSON(w, p)
	case SVG:
		return writeSVG(w, p)
	}
	names := make([]string, len(Formats))
	for i, f := range Formats {
		names[i] = string(f)
	}
	return fmt.Errorf("no graph format %q%s", f, strict.DidYouMean(string(f), names))
}

// tiers are the node names of each tier that has some, the highest first, hosts last.
func tiers(t *topo.Topology) [][]string {
	byTier := map[topo.Tier][]string{}
	var order []topo.Tier
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if byTier[n.Tier] == nil {
			order = append(order, n.Tier)
		}
		byTier[n.Tier] = append(byTier[n.Tier], n.Name)
	}
	slices.Sort(order)
	slices.Reverse(order)
	out := make([][]string, len(order))
	for i, tier := range order {
		out[i] = byTier[tier]
	}
	return out
}

// caption is what a node is beside its name: "rxe-host, 8 GPUs"; empty for a plain one.
func caption(n *topo.Node) string {
	var parts []string
	if n.Kind != "" {
		parts = append(parts, string(n.Kind))
	}
	if n.GPUs > 0 {
		parts = append(parts, plural(n.GPUs, "GPU"))
	}
	return strings.Join(parts, ", ")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// printer keeps the first error of a series of writes.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) f(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}
