package report

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/rocebed/rocebed/testbed/compare"
)

func span(ns float64) time.Duration { return time.Duration(ns) }

var link = regexp.MustCompile(`\s*\(?\[[^\]]*\]\([^)]*\)\)?`)

// plain is Markdown without its marks and links.
func plain(text string) string { return strings.ReplaceAll(link.ReplaceAllString(text, ""), "`", "") }

// ComparisonMarkdown writes runs side by side as a table for a page: what a terminal gets, without the reasons, which the page
// around it tells.
func ComparisonMarkdown(w io.Writer, c *compare.Comparison) error {
	var b strings.Builder
	line := func(first string, cells []string) {
		b.WriteString("| " + first + " | " + strings.Join(cells, " | ") + " |\n")
	}
	each := func(cell func(i int, r compare.Run) string) (out []string) {
		for i, r := range c.Runs {
			out = append(out, cell(i, r))
		}
		return append(out, "")
	}
	line(title(c), each(func(_ int, r compare.Run) string { return "`" + r.Label + "`" }))
	line("---", strings.Split(strings.Repeat("---: ", len(c.Runs))+"---", " "))
	line("verdict", each(func(_ int, r compare.Run) string { return r.Verdict }))
	for _, f := range facts(c) {
		line(f.name, each(func(_ int, r compare.Run) string { return f.of(r) }))
	}
	group := func(name string, rows []compare.Row) {
		for _, r := range shown(rows) {
			cells := each(func(i int, _ compare.Run) string { return value(r, r.Values[i]) })
			if r.Differs && r.Ratio > 0 {
				cells[len(cells)-1] = fmt.Sprintf("×%.1f", r.Ratio)
			}
			line(name+r.Name, cells)
		}
	}
	for _, g := range c.Workloads {
		group(g.Name+": ", g.Rows)
	}
	for _, g := range c.Faults {
		group(g.Name+": ", g.Rows)
	}
	for _, r := range c.Counters {
		group("", []compare.Row{r})
	}
	for _, x := range c.Expectations {
		line("`"+strings.ReplaceAll(x.Expr, "|", "\\|")+"`", each(func(i int, _ compare.Run) string {
			if ok := x.Passed[i]; ok != nil {
				return yes(*ok)
			}
			return "–"
		}))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
