package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/topo/strict"
)

// chained are faults "name: when / until", each of them 1 µs long unless it has an until.
func chained(t *testing.T, lines ...string) (out []Spec) {
	t.Helper()
	for _, line := range lines {
		name, rest, _ := strings.Cut(line, ":")
		when, until, _ := strings.Cut(rest, "/")
		s := Spec{Name: strings.TrimSpace(name), Kind: LinkDown}
		for text, to := range map[string]**Trigger{when: &s.Schedule.When, until: &s.Schedule.Until} {
			if text = strings.TrimSpace(text); text == "" {
				continue
			}
			*to = &Trigger{}
			if err := (*to).UnmarshalText([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if s.Schedule.Until == nil {
			s.Schedule.For = time.Microsecond
		}
		out = append(out, s)
	}
	return out
}

func TestFaultsThatWaitForEachOtherInACircleAreNamed(t *testing.T) {
	for _, c := range []struct {
		why   string
		lines []string
		want  string // of every error "place key: the circle's parts", as they come
	}{
		{"nobody waits", []string{"a:", "b:"}, ""},
		{"a chain", []string{"c: fault b healed", "b: fault a applied", "a:"}, ""},
		{"events of others come some time", []string{"a: workload w finished", "b: fault a healed / metric x > 1"}, ""},
		{"one ends the other, which began by itself", []string{"a: / fault b applied", "b: fault a applied"}, ""},
		{"it ends by its own beginning", []string{"a: / fault a applied"}, ""},
		{"who is over before it began is over", []string{"a: workload w started / fault c healed", "b: fault a healed", "c:"}, ""},
		{"nobody of that name", []string{"a: fault x applied"}, ""},
		{"two begin after each other", []string{"a: fault b applied", "b: fault a healed"},
			`0 when: a begins when "fault b applied", b begins when "fault a healed"`},
		{"who waits behind a circle isn't in it", []string{"z: fault a applied", "a: fault b applied", "b: fault a applied", "y: fault z healed"},
			`1 when: a begins when "fault b applied", b begins when "fault a applied"`},
		{"three, and two, apart", []string{"a: fault b healed", "b: fault c applied", "x: fault y applied", "c: fault a applied", "y: fault x applied"},
			`0 when: a begins when "fault b healed", b begins when "fault c applied", c begins when "fault a applied"; ` +
				`2 when: x begins when "fault y applied", y begins when "fault x applied"`},
		{"an end and a beginning", []string{"a: / fault b healed", "b: fault a healed"},
			`0 until: a ends when "fault b healed", b begins when "fault a healed"`},
		{"two ends", []string{"a: / fault b healed", "b: / fault a healed"},
			`0 until: a ends when "fault b healed", b ends when "fault a healed"`},
		{"one's own end", []string{"a: / fault a healed"}, `0 until: a ends when "fault a healed"`},
		{"a group waits for who waits for it", []string{"b: fault g healed", "g/1:", "g/2: fault b applied"},
			`0 when: b begins when "fault g healed", g/2 begins when "fault b applied"`},
		{"one of a group comes by itself", []string{"b: fault g applied", "g/1:", "g/2: fault b applied"}, ""},
	} {
		got := Circles(chained(t, c.lines...))
		var said []string
		for i := range c.lines {
			if got[i] != nil {
				pe, ok := got[i].(*strict.PathError)
				if !ok {
					t.Fatalf("%s: %T has no place", c.why, got[i])
				}
				_, parts, _ := strings.Cut(pe.Err.Error(), ": ")
				said = append(said, fmt.Sprintf("%d %s: %s", i, pe.Path, parts))
			}
		}
		if text := strings.Join(said, "; "); text != c.want {
			t.Errorf("%s: got\n  %s\nwant\n  %s", c.why, text, c.want)
		}
	}
}

func TestAFaultThatEndsByItselfIsInNoCircleForItsUntil(t *testing.T) {
	specs := chained(t, "a: / fault b healed", "b: fault a healed")
	specs[0].Schedule.For = time.Microsecond
	if got := Circles(specs); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}
