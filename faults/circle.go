package faults

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rocebed/rocebed/topo/strict"
)

// Circles says which faults, as Expand gave them, wait for each other so that none can come first: each begins, or ends, at an event that only
// another's beginning or end brings about. Whatever else they wait for counts as coming some time. Each error names a whole circle, once, at the
// key and the place in the list of the fault of it that comes first there; what only waits for a circle isn't named.
func Circles(specs []Spec) map[int]error {
	c := circles{specs: specs, members: map[string][]int{}, begins: make([]bool, len(specs)), ends: make([]bool, len(specs))}
	for i := range specs {
		for name := specs[i].Name; ; {
			c.members[name] = append(c.members[name], i)
			slash := strings.LastIndexByte(name, '/')
			if slash < 0 {
				break
			}
			name = name[:slash]
		}
	}
	c.settle()
	out, seen := map[int]error{}, map[moment]bool{}
	for i := range specs {
		for _, end := range []bool{false, true} {
			if m := (moment{i, end}); !c.comes(m) && !seen[m] {
				c.name(c.circle(m, seen), out)
			}
		}
	}
	return out
}

// moment is when a fault of the list comes into force for the first time, or is healed for the last.
type moment struct {
	fault int
	end   bool
}

// circles knows which moments can come. They are found from what waits for nothing on, so what is left at the end is in a circle, or behind one.
type circles struct {
	specs        []Spec
	members      map[string][]int // of a fault's name, itself; of a group's, all in it
	begins, ends []bool
}

func (c *circles) comes(m moment) bool {
	if m.end {
		return c.ends[m.fault]
	}
	return c.begins[m.fault]
}

func (c *circles) settle() {
	for changed := true; changed; {
		changed = false
		for i := range c.specs {
			s := &c.specs[i].Schedule
			if !c.begins[i] && c.heard(s.When) {
				c.begins[i], changed = true, true
			}
			// One that its end reaches before it began is over, too; one that never ends by itself, the run or a hand ends.
			if !c.ends[i] && (c.begins[i] && (s.Until == nil || s.Ends()) || s.Until != nil && c.heard(s.Until)) {
				c.ends[i], changed = true, true
			}
		}
	}
}

// heard says whether an event can come; nil is the workloads' start.
func (c *circles) heard(t *Trigger) bool {
	_, missing := c.missing(t)
	return !missing
}

// missing is what an event lacks to come.
func (c *circles) missing(t *Trigger) (moment, bool) {
	if t == nil || t.On != OnFault || len(c.members[t.Name]) == 0 {
		return moment{}, false
	}
	all := c.members[t.Name]
	if !slices.ContainsFunc(all, func(i int) bool { return c.begins[i] }) {
		return moment{all[0], false}, true
	}
	if t.State == Healed {
		if at := slices.IndexFunc(all, func(i int) bool { return !c.ends[i] }); at >= 0 {
			return moment{all[at], true}, true
		}
	}
	return moment{}, false
}

// before is a moment that m waits for and that can't come, and the key that has it wait; no key: it is the fault's own beginning.
func (c *circles) before(m moment) (moment, string) {
	s := &c.specs[m.fault].Schedule
	if m.end && (c.begins[m.fault] || s.Until != nil && !s.Ends()) {
		b, _ := c.missing(s.Until)
		return b, "until"
	}
	if m.end {
		return moment{m.fault, false}, ""
	}
	b, _ := c.missing(s.When)
	return b, "when"
}

// circle follows what a moment waits for until it comes back to where it was; nil where it comes to what was seen before.
func (c *circles) circle(m moment, seen map[moment]bool) []moment {
	var way []moment
	for ; !seen[m]; m, _ = c.before(m) {
		seen[m] = true
		way = append(way, m)
	}
	if at := slices.Index(way, m); at >= 0 {
		return way[at:]
	}
	return nil
}

// name puts a circle in words, from the fault on that comes first in the list.
func (c *circles) name(way []moment, out map[int]error) {
	if len(way) == 0 {
		return
	}
	first := 0
	for i, m := range way {
		if m.fault < way[first].fault {
			first = i
		}
	}
	way = append(slices.Clone(way[first:]), way[:first]...)
	var parts []string
	at := ""
	for _, m := range way {
		_, key := c.before(m)
		s := &c.specs[m.fault].Schedule
		switch key {
		case "when":
			parts = append(parts, fmt.Sprintf("%s begins when %q", c.specs[m.fault].Name, s.When))
		case "until":
			parts = append(parts, fmt.Sprintf("%s ends when %q", c.specs[m.fault].Name, s.Until))
		}
		if at == "" {
			at = key
		}
	}
	said := "these faults wait for each other in a circle, so that none can come first: "
	if len(parts) == 1 {
		said = "the fault waits for itself: "
	}
	i := way[0].fault
	if out[i] == nil {
		out[i] = strict.At(at, "%s%s", said, strings.Join(parts, ", "))
	}
}
