package testbed

import (
	"strings"
	"testing"
)

func TestFaultsInACircleAreRefusedBeforeAnythingIsCreated(t *testing.T) {
	at := "faults:"
	for want, circle := range map[string]string{
		`demo.yaml:13:58: these faults wait for each other in a circle, so that none can come first: a begins when "fault b applied", b begins when "fault a healed"`: `
  - {name: a, kind: down, at: [leaf1-spine1], schedule: {when: fault b applied, for: 5us}}
  - {name: b, kind: down, at: [leaf1-spine1], schedule: {when: fault a healed, for: 5us}}`,
		`begins when "fault last healed", last begins when "fault g/2 healed"`: `
  - {name: g, at: [leaf1-spine1], sequence: [{kind: down, schedule: {when: fault last healed, for: 5us}}, {kind: down, schedule: {for: 5us}}]}
  - {name: last, kind: down, at: [leaf1-spine1], schedule: {when: fault g/2 healed, for: 5us}}`,
		`the fault waits for itself: a ends when "fault a healed"`: `
  - {name: a, kind: down, at: [leaf1-spine1], schedule: {until: fault a healed}}`,
	} {
		if _, err := Parse("demo.yaml", []byte(strings.Replace(good, at, at+circle, 1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	chain := `
  - {name: a, kind: down, at: [leaf1-spine1], schedule: {when: fault b healed, for: 5us}}
  - {name: b, kind: down, at: [leaf1-spine1], schedule: {for: 5us}}`
	if _, err := Parse("demo.yaml", []byte(strings.Replace(good, at, at+chain, 1))); err != nil {
		t.Errorf("faults one after the other: %v", err)
	}
}

func TestFaultsInACircleAreRefusedOnALivingFabricToo(t *testing.T) {
	s, err := Parse("demo.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	in, err := readFaults("more.yaml", []byte(`- {name: a, kind: down, at: [leaf1-spine1], schedule: {when: fault b applied, for: 5us}}
- {name: b, kind: down, at: [leaf1-spine1], schedule: {when: fault a applied, for: 5us}}
- {name: c, kind: down, at: [leaf1-spine1], schedule: {when: fault old healed, for: 5us}}
`))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = in.expand(s, []string{"old"})
	if err == nil || !strings.Contains(err.Error(), `more.yaml:1:`) || !strings.Contains(err.Error(), `b begins when "fault a applied"`) || strings.Count(err.Error(), "circle") != 1 {
		t.Errorf("got %v", err)
	}
}
