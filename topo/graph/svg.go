package graph

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/rocebed/rocebed/topo"
)

// Colours by tier (hosts, leaves, spines, cores and above), fill and outline, and by rail.
var (
	fills     = []string{"#fff4e5", "#e3f6e8", "#e1edfd", "#efe6fd"}
	outlines  = []string{"#b45309", "#15803d", "#1d4ed8", "#6d28d9"}
	railLines = []string{"#64748b", "#0284c7", "#c026d3", "#65a30d", "#ea580c", "#0d9488", "#e11d48", "#7c3aed"}
)

const odd = "#dc2626" // links that differ from the others of their tier

func writeSVG(w io.Writer, p *topo.Plan) error {
	l := newLayout(p)
	buf := bufio.NewWriter(w)
	out := &printer{w: buf}
	out.f("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" font-family=\"Helvetica, Arial, sans-serif\">\n", l.width, l.height, l.width, l.height)
	out.f("<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n")
	t := p.Topology
	out.f("<text x=\"%.0f\" y=\"30\" font-size=\"18\" font-weight=\"bold\" fill=\"#0f172a\">%s</text>\n", sideMargin, esc(t.Name))
	out.f("<text x=\"%.0f\" y=\"50\" font-size=\"12\" fill=\"#475569\">%s, %s, %s</text>\n", sideMargin,
		plural(len(t.Hosts()), "host"), strings.Replace(plural(len(t.Switches()), "switch"), "switchs", "switches", 1), plural(len(t.Links), "link"))
	usual := usualLinks(p)
	l.drawLines(out, usual)
	for _, row := range l.rows {
		for _, b := range row {
			l.drawBox(out, b)
		}
	}
	l.drawPorts(out)
	l.drawLegend(out, usual)
	out.f("</svg>\n")
	if out.err != nil {
		return out.err
	}
	return buf.Flush()
}

func esc(s string) string { return html.EscapeString(s) }

// settings are what links can differ in.
func settings(l *topo.Link) string {
	return fmt.Sprintf("%s, %s, MTU %d", l.Rate, l.Delay, l.MTU)
}

func linkTier(p *topo.Plan, l *topo.Link) topo.Tier {
	_, low := ends(p, l)
	return p.Node(low.Node).Tier
}

// usualLinks are the commonest settings of each tier's links; of equally common the first.
func usualLinks(p *topo.Plan) map[topo.Tier]string {
	counts, best := map[topo.Tier]map[string]int{}, map[topo.Tier]string{}
	for i := range p.Topology.Links {
		l := &p.Topology.Links[i]
		tier, s := linkTier(p, l), settings(l)
		if counts[tier] == nil {
			counts[tier] = map[string]int{}
		}
		counts[tier][s]++
		if counts[tier][s] > counts[tier][best[tier]] {
			best[tier] = s
		}
	}
	return best
}

func (l *layout) drawLines(out *printer, usual map[topo.Tier]string) {
	for _, ln := range l.lines {
		link := &l.plan.Topology.Links[ln.links[0]]
		_, low := ends(l.plan, link)
		port, _ := l.plan.Port(low)
		colour, width, dashes := railLines[port.Rail%len(railLines)], 1.4, ""
		unusual := settings(link) != usual[linkTier(l.plan, link)]
		if unusual {
			colour, width = odd, 2
		}
		if len(l.lines) > 400 {
			width /= 2
		}
		if ln.side && !ln.neighbours {
			dashes = " stroke-dasharray=\"6 3\""
		}
		title := fmt.Sprintf("%s -- %s: %s", link.A, link.B, settings(link))
		if n := len(ln.links); n > 1 {
			title = fmt.Sprintf("%d links, %s", n, settings(link))
		}
		out.f("<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\"%s><title>%s</title></path>\n", ln.path(), colour, width, dashes, esc(title))
		if unusual && l.portNames {
			x, y := ln.middle()
			label(out, x, y, 10, odd, settings(link))
		}
	}
}

func (ln *line) path() string {
	a, b := ln.high, ln.low
	if ln.side && !ln.neighbours {
		h := arcHeight(b.x - a.x)
		return fmt.Sprintf("M%.1f %.1f C%.1f %.1f %.1f %.1f %.1f %.1f", a.x, a.y, a.x, a.y-h*4/3, b.x, b.y-h*4/3, b.x, b.y)
	}
	return fmt.Sprintf("M%.1f %.1f L%.1f %.1f", a.x, a.y, b.x, b.y)
}

// middle is where a line's label stands: a third of the way up, where lines have parted.
func (ln *line) middle() (x, y float64) {
	a, b := ln.high, ln.low
	switch {
	case ln.neighbours:
		return (a.x + b.x) / 2, a.y - 8
	case ln.side:
		return (a.x + b.x) / 2, a.y - arcHeight(b.x-a.x)
	}
	return b.x + (a.x-b.x)/3, b.y + (a.y-b.y)/3
}

// label writes text with a white rim, so that it can be read on top of lines.
func label(out *printer, x, y, size float64, colour, text string) {
	out.f("<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.0f\" text-anchor=\"middle\" fill=\"%s\" stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke\">%s</text>\n", x, y, size, colour, esc(text))
}

func (l *layout) drawBox(out *printer, b *box) {
	n := b.nodes[0]
	c := min(int(n.Tier), len(fills)-1)
	radius := 4
	if n.Role == topo.Host {
		radius = 14
	}
	var about []string
	for _, n := range b.nodes {
		for _, pp := range l.plan.Ports(n.Name) {
			if len(about) < 64 {
				about = append(about, fmt.Sprintf("%s %s to %s", pp.Ref, pp.Addr, pp.Peer))
			}
		}
	}
	out.f("<g><title>%s</title>\n", esc(strings.Join(about, "\n")))
	if len(b.nodes) > 1 {
		out.f("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\" rx=\"%d\" fill=\"%s\" stroke=\"%s\"/>\n", b.x-b.w/2+4, b.y+4, b.w, boxHeight, radius, fills[c], outlines[c])
	}
	out.f("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\" rx=\"%d\" fill=\"%s\" stroke=\"%s\"/>\n", b.x-b.w/2, b.y, b.w, boxHeight, radius, fills[c], outlines[c])
	sub := b.subtitle()
	titleY := b.y + boxHeight/2 + 4
	if sub != "" {
		titleY = b.y + 17
		out.f("<text x=\"%.1f\" y=\"%.1f\" font-size=\"10\" text-anchor=\"middle\" fill=\"#475569\">%s</text>\n", b.x, b.y+31, esc(sub))
	}
	out.f("<text x=\"%.1f\" y=\"%.1f\" font-size=\"12\" font-weight=\"bold\" text-anchor=\"middle\" fill=\"#0f172a\">%s</text>\n</g>\n", b.x, titleY, esc(b.title()))
}

func (l *layout) drawPorts(out *printer) {
	if !l.portNames {
		return
	}
	for _, ln := range l.lines {
		for _, e := range []*end{ln.high, ln.low} {
			if len(e.ports) == 0 {
				continue
			}
			x, y := e.x, e.y-4
			switch {
			case ln.neighbours && e == ln.high:
				x, y = e.x+14, e.y+11
			case ln.neighbours:
				x, y = e.x-14, e.y+11
			case e.y > e.at.y:
				y = e.y + 11
			}
			label(out, x, y, 9, "#64748b", e.ports[0])
		}
	}
}

// drawLegend writes what the links of each tier are, and which colour is which rail.
func (l *layout) drawLegend(out *printer, usual map[topo.Tier]string) {
	y := l.height - footer + 28
	var parts []string
	for tier, name := range []string{"host links", "leaf links", "spine links", "core links"} {
		if s, ok := usual[topo.Tier(tier)]; ok {
			parts = append(parts, name+": "+s)
		}
	}
	out.f("<text x=\"%.0f\" y=\"%.1f\" font-size=\"11\" fill=\"#475569\">%s</text>\n", sideMargin, y, esc(strings.Join(parts, "   ·   ")))
	for i, s := range wrap(l.plan.DeadlockStatement(), int((l.width-2*sideMargin)/5.8)) {
		out.f("<text x=\"%.0f\" y=\"%.1f\" font-size=\"11\" fill=\"#475569\">%s</text>\n", sideMargin, y+18+float64(i)*15, esc(s))
	}
	rails := 0
	for _, h := range l.plan.Topology.Hosts() {
		for _, p := range h.Ports {
			rails = max(rails, p.Rail+1)
		}
	}
	if rails < 2 {
		return
	}
	for r := range min(rails, len(railLines)) {
		x := l.width - sideMargin - float64(min(rails, len(railLines))-r)*62
		out.f("<path d=\"M%.1f 46 h18\" stroke=\"%s\" stroke-width=\"3\"/><text x=\"%.1f\" y=\"50\" font-size=\"11\" fill=\"#475569\">rail %d</text>\n", x, railLines[r], x+22, r)
	}
}

// wrap breaks text into lines of so many letters at spaces; three lines, the rest is cut.
func wrap(text string, letters int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len([]rune(*last))+1+len([]rune(word)) <= letters:
			*last += " " + word
		case len(lines) == 3:
			*last += " …"
			return lines
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
