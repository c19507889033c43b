package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rocebed/rocebed/testbed/compare"
	"github.com/rocebed/rocebed/testbed/record"
)

// quiet are the rows that are shown only where they differ.
var quiet = []string{"passed", "bytes", "verified_bytes", "wrong_bytes", "messages", "jain", "lost", "duplicates", "out_of_order", "violations",
	"strikes", "verified", "healed"}

// told are those that another row tells already.
var told = []string{"algbw", "duration"}

// shown are the rows that a reader gets to see.
func shown(rows []compare.Row) []compare.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r compare.Row) bool {
		switch {
		case slices.Contains(told, r.Name):
			return true
		case slices.Contains(quiet, r.Name):
			return !r.Differs
		}
		return r.Unit == "bps" && !slices.ContainsFunc(r.Values, func(v *float64) bool { return v != nil && *v != 0 })
	})
}

// value writes one of a row's values; "–": the run has none.
func value(r compare.Row, v *float64) string {
	switch {
	case v == nil:
		return "–"
	case r.Unit == "bool":
		return yes(*v != 0)
	case r.Unit == "bps":
		return Rate(int64(*v))
	case r.Unit == "ns":
		return Span(span(*v))
	case r.Unit == "bytes":
		return Bytes(int64(*v))
	case r.Unit == "1":
		return fmt.Sprintf("%.3f", *v)
	}
	return Count(int64(*v))
}

// apart is how far a row's values are, and the letters of the reasons.
func apart(r compare.Row) string {
	if !r.Differs {
		return ""
	}
	text := "differ"
	switch {
	case r.Unit == "bool" || r.Ratio == 0:
	case r.Ratio < 1.095:
		text = fmt.Sprintf("×%.3f", r.Ratio)
	case r.Ratio < 99.5:
		text = fmt.Sprintf("×%.1f", r.Ratio)
	default:
		text = "×" + Count(int64(math.Round(r.Ratio)))
	}
	return strings.TrimSpace(text + " " + letters(r.Why))
}

// letters name reasons by their places: a, b, … z, and further on by number.
func letters(places []int) string {
	var all []string
	for _, p := range places {
		all = append(all, letter(p))
	}
	return strings.Join(all, " ")
}

func letter(place int) string {
	if place < 26 {
		return string(rune('a' + place))
	}
	return fmt.Sprint(place + 1)
}

// Comparison writes runs side by side, a column each.
func Comparison(w io.Writer, c *compare.Comparison, colour bool) error {
	p := painter(colour)
	var b strings.Builder
	b.WriteString("\n")
	t := table{head: []string{p.bold(title(c))}, right: map[int]bool{}}
	for i, r := range c.Runs {
		t.head = append(t.head, p.bold(clip(r.Label, 20)))
		t.right[i+1] = true
	}
	t.head = append(t.head, "")
	row := func(name string, cell func(r compare.Run) string) {
		cells := []string{name}
		for _, r := range c.Runs {
			cells = append(cells, cell(r))
		}
		t.add(append(cells, "")...)
	}
	row("verdict", func(r compare.Run) string { return verdict(p, r.Verdict) })
	for _, f := range facts(c) {
		row(f.name, f.of)
	}
	group := func(name string, rows []compare.Row) {
		if rows = shown(rows); len(rows) == 0 {
			return
		}
		t.add(make([]string, len(t.head))...)
		t.add(append([]string{p.bold(name)}, make([]string, len(c.Runs)+1)...)...)
		for _, r := range rows {
			cells := []string{"  " + r.Name}
			for _, v := range r.Values {
				cells = append(cells, value(r, v))
			}
			t.add(append(cells, apart(r))...)
		}
	}
	for _, g := range c.Workloads {
		group(heading(g), g.Rows)
	}
	for _, g := range c.Faults {
		group("fault "+heading(g), g.Rows)
	}
	group("counters, all over the fabric", c.Counters)
	b.WriteString(t.String())
	writeExpectations(&b, p, c)
	writeNotes(&b, p, c)
	_, err := io.WriteString(w, b.String())
	return err
}

// title is what ran, where it was the same.
func title(c *compare.Comparison) string {
	for _, r := range c.Runs {
		if r.Name != c.Runs[0].Name {
			return ""
		}
	}
	return c.Runs[0].Name
}

func heading(g compare.Group) string {
	if g.Kind == "" || g.Kind == g.Name {
		return clip(g.Name, 32)
	}
	return clip(g.Name, 32) + " (" + g.Kind + ")"
}

func verdict(p painter, v string) string {
	if v == record.Pass {
		return p.good("PASS")
	}
	return p.bad("FAIL")
}

// fact is what is said of a run as a whole.
type fact struct {
	name string
	of   func(compare.Run) string
}

// facts are the rows that tell how each run was made; what was the same in all is left out unless it is part of a result.
func facts(c *compare.Comparison) []fact {
	all := []fact{{"fabric time", func(r compare.Run) string { return Span(r.Fabric) }}, {"wall time", func(r compare.Run) string { return Span(r.Wall) }}}
	differ := func(name string, of func(compare.Run) string) {
		for _, r := range c.Runs {
			if of(r) != of(c.Runs[0]) {
				all = append(all, fact{name, of})
				return
			}
		}
	}
	differ("runs on", func(r compare.Run) string {
		switch {
		case r.Backend == "sim":
			return "virtual time"
		case r.Guest:
			return "the guest"
		}
		return "this machine"
	})
	differ("dilation", func(r compare.Run) string {
		switch n, err := strconv.Atoi(r.DilationNamed); {
		case r.Backend == "sim" && err == nil:
			return "– (named: " + Count(int64(n)) + ")"
		case r.Backend == "sim":
			return "–"
		}
		return Count(int64(r.Dilation))
	})
	differ("seed", func(r compare.Run) string { return fmt.Sprint(r.Seed) })
	return all
}

// writeExpectations writes a line an expectation, with a mark for each run.
func writeExpectations(b *strings.Builder, p painter, c *compare.Comparison) {
	if len(c.Expectations) > 0 {
		b.WriteString("\n")
	}
	for _, x := range c.Expectations {
		b.WriteString("  ")
		for _, ok := range x.Passed {
			if ok == nil {
				b.WriteString("–")
			} else {
				b.WriteString(p.mark(*ok))
			}
		}
		indent := strings.Repeat(" ", len(x.Passed)+3)
		fmt.Fprintf(b, " %s\n", wrap(x.Expr, columns-len(indent), indent))
		for i, saw := range x.Saw {
			for _, v := range saw {
				fmt.Fprintf(b, "%s  %s\n", indent, wrap(c.Runs[i].Label+": "+v.Expr+" = "+v.Value, columns-len(indent)-2, indent+"  "))
			}
		}
	}
}

// writeNotes writes what a reader has to know: what keeps the runs from being comparable, what went wrong, why they differ.
func writeNotes(b *strings.Builder, p painter, c *compare.Comparison) {
	gap := "\n"
	note := func(mark, text string) {
		b.WriteString(gap + "  " + mark + " " + wrap(text, columns-4, "    ") + "\n")
		gap = ""
	}
	if !c.SameScenario {
		note(p.warn("!"), "the runs are of different scenarios, or of one that was changed in between")
	}
	if !c.SameSeed {
		note(p.warn("!"), "the runs have different seeds: other payloads, and other packets lost")
	}
	for _, r := range c.Runs {
		for _, x := range r.Problems {
			note(p.bad("✗"), r.Label+": "+x)
		}
	}
	if len(c.Reasons) > 0 {
		fmt.Fprintf(b, "\n  %s\n", p.bold("What may be behind it (docs/backends.md)"))
		for i, d := range c.Reasons {
			text := fmt.Sprintf("%s: on kernel %s; on soft and sim %s", d.What, plain(d.Kernel), plain(d.Software))
			if d.Why != "" {
				text += ": " + plain(d.Why)
			}
			b.WriteString("  " + letter(i) + "  " + wrap(text, columns-5, "     ") + "\n")
		}
	}
	b.WriteString("\n")
	for _, r := range c.Runs {
		fmt.Fprintf(b, "  record  %s\n", r.Record)
	}
}
