package graph

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rocebed/rocebed/topo"
)

// Sizes in the drawing, in pixels.
const (
	charWidth  = 7.2 // of 12 px sans-serif, generously
	boxHeight  = 40.0
	boxGap     = 18.0
	groupGap   = 34.0 // between hosts of different leaves
	joinedGap  = 84.0 // between neighbours with a link between them
	portPitch  = 30.0 // room for a port's name
	sideMargin = 40.0
	topMargin  = 92.0
	footer     = 88.0
	manyHosts  = 48 // above it hosts on the same switches share a box
	manyLinks  = 96 // above it ports go without names
)

// box is a node of the drawing: one node, or hosts that hang on the same switches.
type box struct {
	nodes   []*topo.Node
	row     int // 0 at the top
	col     int // in its row
	x, y, w float64
	up      []*end // link ends at its upper edge, from left to right
	down    []*end // at its lower edge
	beneath string // the switches above a host, which decide who shares a box
}

// end is where a line meets a box.
type end struct {
	at, other *box
	ports     []string
	x, y      float64
}

// line is what joins two boxes: a link, or the links of hosts that share a box.
type line struct {
	links      []int // indices into the topology's links
	low, high  *end
	side       bool // within a row
	neighbours bool // within a row and next to each other
	lane       int  // among the lines that join the same neighbours
}

type layout struct {
	plan      *topo.Plan
	rows      [][]*box
	lines     []*line
	width     float64
	height    float64
	portNames bool
	boxOf     map[string]*box
	joined    map[[2]*box]int // how many lines join two neighbours of a row
}

func newLayout(p *topo.Plan) *layout {
	l := &layout{plan: p, boxOf: map[string]*box{}, joined: map[[2]*box]int{}, portNames: len(p.Topology.Links) <= manyLinks}
	l.makeBoxes()
	l.makeLines()
	for _, row := range l.rows {
		for _, b := range row {
			b.w = l.widthOf(b)
		}
	}
	l.place()
	l.attach()
	return l
}

func (l *layout) makeBoxes() {
	t := l.plan.Topology
	collapse := len(t.Hosts()) > manyHosts
	for r, names := range tiers(t) {
		var row []*box
		for _, name := range names {
			n := l.plan.Node(name)
			b := &box{nodes: []*topo.Node{n}, row: r}
			if n.Role == topo.Host {
				for _, pp := range l.plan.Ports(name) {
					b.beneath += pp.Peer.Node + " "
				}
			}
			if last := len(row) - 1; collapse && n.Role == topo.Host && last >= 0 && row[last].beneath == b.beneath && row[last].nodes[0].Kind == n.Kind && row[last].nodes[0].GPUs == n.GPUs {
				row[last].nodes = append(row[last].nodes, n)
				b = row[last]
			} else {
				b.col = len(row)
				row = append(row, b)
			}
			l.boxOf[name] = b
		}
		l.rows = append(l.rows, row)
	}
}

// makeLines joins boxes; links of the same boxes merge where hosts share one, rail by rail.
func (l *layout) makeLines() {
	type key struct {
		a, b *box
		rail int
	}
	merged := map[key]*line{}
	t := l.plan.Topology
	for i := range t.Links {
		hi, lo := ends(l.plan, &t.Links[i])
		a, b := l.boxOf[hi.Node], l.boxOf[lo.Node]
		if a.row == b.row && a.col > b.col {
			a, b, hi, lo = b, a, lo, hi
		}
		if len(a.nodes) > 1 || len(b.nodes) > 1 {
			port, _ := l.plan.Port(lo)
			k := key{a, b, port.Rail}
			if have := merged[k]; have != nil {
				have.links = append(have.links, i)
				continue
			}
			merged[k] = &line{}
			l.lines = append(l.lines, merged[k])
			*merged[k] = *l.newLine(i, a, b, nil, nil)
			continue
		}
		ln := l.newLine(i, a, b, []string{hi.Port}, []string{lo.Port})
		if ln.neighbours {
			ln.lane = l.joined[[2]*box{a, b}]
			l.joined[[2]*box{a, b}]++
		}
		l.lines = append(l.lines, ln)
	}
}

func (l *layout) newLine(i int, a, b *box, aPorts, bPorts []string) *line {
	side := a.row == b.row
	return &line{
		links: []int{i}, side: side, neighbours: side && b.col == a.col+1,
		high: &end{at: a, other: b, ports: aPorts}, low: &end{at: b, other: a, ports: bPorts},
	}
}

func (b *box) title() string {
	if n := len(b.nodes); n > 1 {
		return b.nodes[0].Name + " … " + b.nodes[n-1].Name
	}
	return b.nodes[0].Name
}

func (b *box) subtitle() string {
	c := caption(b.nodes[0])
	if n := len(b.nodes); n > 1 {
		each := fmt.Sprintf("%d hosts", n)
		if c != "" {
			each += " × " + c
		}
		return each
	}
	return c
}

func (l *layout) widthOf(b *box) float64 {
	w := 16 + charWidth*float64(max(len(b.title()), len(b.subtitle())*5/6))
	if l.portNames {
		up, down := 0, 0
		for _, ln := range l.lines {
			for _, e := range []*end{ln.high, ln.low} {
				if e.at == b && !ln.neighbours {
					if ln.side || e == ln.low {
						up++
					} else {
						down++
					}
				}
			}
		}
		w = max(w, 10+portPitch*float64(max(up, down)))
	}
	return max(w, 64)
}

// place lays rows out from the hosts up: a switch stands over the middle of what hangs on it,
// as far as its neighbours leave room, and its row keeps the order of the topology.
func (l *layout) place() {
	under := map[*box][]*box{}
	for _, ln := range l.lines {
		if !ln.side {
			under[ln.high.at] = append(under[ln.high.at], ln.low.at)
		}
	}
	for r := len(l.rows) - 1; r >= 0; r-- {
		row := l.rows[r]
		want := make([]float64, len(row))
		for i, b := range row {
			for _, u := range under[b] {
				want[i] += u.x / float64(len(under[b]))
			}
		}
		x := 0.0
		for i, b := range row {
			least := x
			if i > 0 {
				least = row[i-1].x + row[i-1].w/2 + l.gap(row[i-1], b) + b.w/2
			}
			if len(under[b]) > 0 && (i == 0 || want[i] > least) {
				least = want[i]
			}
			b.x, x = least, least
		}
		// What was pushed right is moved back until the row is centred over what it wanted.
		shift, n := 0.0, 0.0
		for i, b := range row {
			if len(under[b]) > 0 {
				shift, n = shift+want[i]-b.x, n+1
			}
		}
		for _, b := range row {
			if n > 0 {
				b.x += shift / n
			}
		}
		if n > 0 {
			l.spreadOut(row, l.rows[r+1], want)
		}
	}
	left, right := 0.0, 0.0
	for i, row := range l.rows {
		for j, b := range row {
			if lo := b.x - b.w/2; i == 0 && j == 0 || lo < left {
				left = lo
			}
			if hi := b.x + b.w/2; i == 0 && j == 0 || hi > right {
				right = hi
			}
		}
	}
	l.width = max(right-left+2*sideMargin, 640)
	offset := (l.width - (right - left)) / 2
	pitch := boxHeight + min(max(100, l.width/9), 260)
	arcs := 0.0 // room for lines within a row that pass over others
	for _, ln := range l.lines {
		if ln.side && !ln.neighbours {
			arcs = max(arcs, arcHeight(ln.low.at.x-ln.high.at.x))
		}
	}
	for i, row := range l.rows {
		for _, b := range row {
			b.x += offset - left
			b.y = topMargin + arcs + float64(i)*pitch
		}
	}
	l.height = topMargin + arcs + float64(len(l.rows)-1)*pitch + boxHeight + footer
}

func arcHeight(dx float64) float64 { return 24 + max(dx, -dx)*0.12 }

// gap is the room between neighbours of a row.
func (l *layout) gap(a, b *box) float64 {
	switch {
	case l.joined[[2]*box{a, b}] > 0:
		return joinedGap
	case a.beneath != b.beneath:
		return groupGap
	}
	return boxGap
}

// spreadOut gives a row whose boxes all want the same place (spines that see all leaves)
// three fifths of the width of the row below, so that their lines part.
func (l *layout) spreadOut(row, below []*box, want []float64) {
	if len(row) < 2 || len(below) < 2 {
		return
	}
	for _, w := range want {
		if w < want[0]-1 || w > want[0]+1 {
			return
		}
	}
	width := 0.6 * (below[len(below)-1].x - below[0].x)
	if row[len(row)-1].x-row[0].x >= width {
		return
	}
	for i, b := range row {
		b.x = want[0] + width*(float64(i)/float64(len(row)-1)-0.5)
	}
}

// attach spreads the ends of lines along the edges of boxes, in the order of where they go.
func (l *layout) attach() {
	for _, ln := range l.lines {
		switch {
		case ln.neighbours:
			y := ln.high.at.y + boxHeight/2 + float64((ln.lane+1)/2*9)*float64(1-ln.lane%2*2)
			ln.high.x, ln.high.y = ln.high.at.x+ln.high.at.w/2, y
			ln.low.x, ln.low.y = ln.low.at.x-ln.low.at.w/2, y
		case ln.side:
			ln.high.at.up = append(ln.high.at.up, ln.high)
			ln.low.at.up = append(ln.low.at.up, ln.low)
		default:
			ln.high.at.down = append(ln.high.at.down, ln.high)
			ln.low.at.up = append(ln.low.at.up, ln.low)
		}
	}
	for _, row := range l.rows {
		for _, b := range row {
			spread(b, b.up, b.y)
			spread(b, b.down, b.y+boxHeight)
		}
	}
}

func spread(b *box, ends []*end, y float64) {
	slices.SortStableFunc(ends, func(p, q *end) int { return cmp.Compare(p.other.x, q.other.x) })
	step := min(portPitch, (b.w-10)/float64(max(1, len(ends))))
	for i, e := range ends {
		e.x, e.y = b.x+step*(float64(i)-float64(len(ends)-1)/2), y
	}
}
