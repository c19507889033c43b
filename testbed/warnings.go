package testbed

import (
	"fmt"
	"regexp"
)

// whose is what names one queue pair of one device at the head of a warning.
var whose = regexp.MustCompile(`^(\S+: QP 0x[0-9a-f]+): (.*)$`)

// gather says once what was warned of many queue pairs, in the order of first mention.
func gather(warnings []string) []string {
	type group struct {
		first, text string
		n           int
	}
	var groups []*group
	byText := map[string]*group{}
	for _, w := range warnings {
		first, text := "", w
		if m := whose.FindStringSubmatch(w); m != nil {
			first, text = m[1], m[2]
		}
		g := byText[text]
		if g == nil {
			g = &group{first: first, text: text}
			byText[text] = g
			groups = append(groups, g)
		}
		g.n++
	}
	var out []string
	for _, g := range groups {
		switch {
		case g.first == "":
			out = append(out, g.text)
		case g.n == 1:
			out = append(out, g.first+": "+g.text)
		default:
			out = append(out, fmt.Sprintf("%s (%d queue pairs, the first %s)", g.text, g.n, g.first))
		}
	}
	return out
}
