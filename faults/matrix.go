package faults

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rocebed/rocebed/faults/packet"
)

// Support is how much of a kind a backend can.
type Support uint8

// The degrees.
const (
	No Support = iota
	Partly
	Yes
)

// Ability is what a backend can of a kind, and what it says of the rest.
type Ability struct {
	Support Support
	Why     []string // without Yes: each reason once
}

// Matrix is what backends can of every kind. It is filled by asking them.
type Matrix struct {
	Backends []string // in the order of the columns
	cells    map[string]map[Kind]Ability
}

// Ask fills a backend's column: check is asked for an example of every kind, and of everything that a kind has variants of. It
// refuses what the backend can't do.
func (m *Matrix) Ask(backend string, check func(yaml string) error) {
	if m.cells == nil {
		m.cells = map[string]map[Kind]Ability{}
	}
	m.Backends = append(m.Backends, backend)
	m.cells[backend] = map[Kind]Ability{}
	for i := range defs {
		d := &defs[i]
		var a Ability
		all := d.Examples()
		can := 0
		for _, text := range all {
			err := check(text)
			if err == nil {
				can++
			} else if why := err.Error(); !slices.Contains(a.Why, why) {
				a.Why = append(a.Why, why)
			}
		}
		switch can {
		case 0:
		case len(all):
			a.Support = Yes
		default:
			a.Support = Partly
		}
		m.cells[backend][d.Kind] = a
	}
}

// Of is what a backend can of a kind; false: it was not asked.
func (m *Matrix) Of(backend string, k Kind) (Ability, bool) {
	a, ok := m.cells[backend][k]
	return a, ok
}

// Markdown is the matrix as a table, with the reasons below it, for docs/faults.md.
func (m *Matrix) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| kind | %s |\n|%s\n", strings.Join(m.Backends, " | "), strings.Repeat(" --- |", len(m.Backends)+1))
	var notes []string
	note := func(text string) int {
		if i := slices.Index(notes, text); i >= 0 {
			return i + 1
		}
		notes = append(notes, text)
		return len(notes)
	}
	for _, k := range Kinds() {
		fmt.Fprintf(&b, "| `%s` |", k)
		for _, backend := range m.Backends {
			a := m.cells[backend][k]
			word := [...]string{No: "no", Partly: "partly", Yes: "yes"}[a.Support]
			for _, why := range a.Why {
				word += fmt.Sprintf(" (%d)", note(strings.ReplaceAll(why, `kind "`+string(k)+`"`, "this kind")))
			}
			fmt.Fprintf(&b, " %s |", word)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for i, text := range notes {
		fmt.Fprintf(&b, "(%d) %s  \n", i+1, text)
	}
	return b.String()
}

// Examples are the kind's, one for everything that not every backend may have of it.
func (d *Def) Examples() []string { return append([]string{d.Example}, d.variants()...) }

// variants are further examples of a kind, for what not every backend has of it.
func (d *Def) variants() []string {
	if d.Kind == Packets {
		var out []string
		for _, v := range packet.Verbs() {
			a := packet.Action{Verb: v, Part: packet.Payload, N: 40, Time: 1000}
			switch v {
			case packet.Duplicate:
				a.N, a.Time = 1, 0
			case packet.Delay:
			default:
				a.Time = 0
			}
			out = append(out, fmt.Sprintf("{name: x, kind: packets, at: ['h1:eth0'], direction: egress, events: [{do: %v}]}", a))
		}
		return append(out, "{name: x, kind: packets, at: ['h1:eth0'], data-pkt-events: [{qpn: 0, psn: 4, type: ecn, iter: 1}]}")
	}
	return d.Variants
}
