package report

import (
	"strings"
	"unicode/utf8"
)

// table lays out rows in columns as wide as what is in them. Columns named in right are
// aligned to the right. A line never ends in blanks.
type table struct {
	head  []string
	right map[int]bool
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) String() string {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, c := range row {
			widths[i] = max(widths[i], width(c))
		}
	}
	var b strings.Builder
	line := func(row []string) {
		var l strings.Builder
		l.WriteString("  ")
		for i, c := range row {
			pad := strings.Repeat(" ", widths[i]-width(c))
			if i > 0 {
				l.WriteString("  ")
			}
			if t.right[i] {
				l.WriteString(pad + c)
			} else {
				l.WriteString(c + pad)
			}
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	line(t.head)
	for _, r := range t.rows {
		line(r)
	}
	return b.String()
}

// width is the number of columns that s takes on a terminal, escape sequences not counted.
func width(s string) int {
	n := 0
	for len(s) > 0 {
		if strings.HasPrefix(s, "\x1b[") {
			if end := strings.IndexByte(s, 'm'); end >= 0 {
				s = s[end+1:]
				continue
			}
		}
		_, size := utf8.DecodeRuneInString(s)
		s = s[size:]
		n++
	}
	return n
}

// clip shortens s to n columns.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}
