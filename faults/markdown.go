package faults

import (
	"fmt"
	"strings"
)

var groupTitles = map[Group]string{
	GroupPacket: "Single packets", GroupLink: "Links", GroupSwitch: "Switches", GroupNIC: "NICs",
	GroupHost: "Hosts", GroupTraffic: "Traffic beside the workloads",
}

// Markdown is the kinds, the keys and what composes, as docs/faults.md has them.
func Markdown() string {
	var b strings.Builder
	for _, g := range Groups() {
		fmt.Fprintf(&b, "\n### %s\n\n| kind | strikes | what happens | keys | a hit is | from |\n| --- | --- | --- | --- | --- | --- |\n", groupTitles[g])
		for i := range defs {
			if d := &defs[i]; d.Group == g {
				hits := d.Hits
				if hits == "" {
					hits = "a packet"
				}
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", d.Kind, d.Target, d.Doc, d.keysText(), hits, d.Source)
			}
		}
	}
	b.WriteString("\n### Keys\n\nWhat a kind says of a key is in its line above; else it is\n\n| key | unit | meaning |\n| --- | --- | --- |\n")
	for _, k := range keyTable {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Name, k.Unit, k.Doc)
	}
	b.WriteString("\n### What composes\n\nFaults on one target compose, but for those that set what a target has one of. They are refused together, before the run where their times say so, else\nwhen the second one is due:\n\n| one at a time | kinds |\n| --- | --- |\n")
	for _, c := range claimOrder() {
		note := ""
		for _, p := range byPriority {
			if p == c {
				note = ", of each priority"
			}
		}
		fmt.Fprintf(&b, "| %s%s | %s |\n", c, note, code(claimants(c)))
	}
	b.WriteString("| `process-kill`, and nothing else in the host | " + code(killed()) + " |\n\n")
	return b.String()
}

// keysText lists a kind's keys with what they need.
func (d *Def) keysText() string {
	var parts []string
	said := map[Need]bool{}
	for _, u := range d.Keys {
		switch {
		case u.Need == OneOf || u.Need == AnyOf:
			if said[u.Need] {
				continue
			}
			said[u.Need] = true
			names := d.keyNames(u.Need)
			word := "one of "
			if u.Need == AnyOf {
				word = "some of "
			}
			if len(names) == 1 {
				word = ""
			}
			parts = append(parts, word+code(names))
			continue
		case u.Need == Optional:
			parts = append(parts, "["+code([]string{u.Key})+"]"+paren(u.Doc))
		default:
			parts = append(parts, code([]string{u.Key})+paren(u.Doc))
		}
	}
	if len(parts) == 0 {
		return "–"
	}
	return strings.Join(parts, ", ")
}

func paren(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func code(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = "`" + n + "`"
	}
	return strings.Join(out, ", ")
}

// claimOrder are the claims in the order of their first kinds.
func claimOrder() (out []claim) {
	seen := map[claim]bool{}
	for i := range defs {
		if c, ok := claims[defs[i].Kind]; ok && !seen[c] {
			seen[c] = true
			out = append(out, c)
		}
	}
	return out
}

func claimants(c claim) (names []string) {
	for i := range defs {
		if claims[defs[i].Kind] == c {
			names = append(names, string(defs[i].Kind))
		}
	}
	return names
}

// killed are the kinds that a killed process leaves nothing of.
func killed() (names []string) {
	for i := range defs {
		if k := defs[i].Kind; k != ProcessKill && Compose(ProcessKill, k) != nil && claims[k] != process {
			names = append(names, string(k))
		}
	}
	return names
}
