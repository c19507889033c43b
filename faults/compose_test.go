package faults

import (
	"fmt"
	"strings"
	"testing"
)

func TestComposingIsSymmetricalAndARefusalHasAReason(t *testing.T) {
	refused := 0
	for _, a := range Kinds() {
		for _, b := range Kinds() {
			ab, ba := Compose(a, b), Compose(b, a)
			if fmt.Sprint(ab) != fmt.Sprint(ba) {
				t.Errorf("%s with %s: %v; the other way round: %v", a, b, ab, ba)
			}
			if ab != nil {
				if refused++; !strings.Contains(ab.Error(), string(a)) || !strings.Contains(ab.Error(), string(b)) {
					t.Errorf("%s with %s: %v doesn't name both", a, b, ab)
				}
			}
		}
	}
	if refused < len(claims) {
		t.Errorf("only %d pairs are refused", refused)
	}
	for k := range claims {
		if DefOf(k) == nil {
			t.Errorf("%s has a claim and is no kind", k)
		}
	}
}

func TestImpairmentsOfPacketsCompose(t *testing.T) {
	all := []Kind{Packets, Loss, Delay, Reorder, Duplicate, Corrupt, BitErrors, Unidirectional, BlackHole}
	for _, a := range all {
		for _, b := range append(all, LinkDown, RateLimit, ECNOff) {
			if err := Compose(a, b); err != nil {
				t.Errorf("%s with %s: %v", a, b, err)
			}
		}
	}
}

func TestFaultsAreRefusedTogetherWhereTheyMeet(t *testing.T) {
	scope := fabric(t)
	for _, c := range []struct {
		why, a, b string
		refused   bool
	}{
		{"the same carrier", "kind: down, at: ['leaf1-spine1']", "kind: flap, at: ['spine1-leaf1'], period: 4ms, down: 1ms", true},
		{"other links", "kind: down, at: ['leaf1-spine1']", "kind: down, at: ['leaf1-spine2']", false},
		{"one after the other", "kind: down, at: [leaf1], schedule: {for: 1ms}", "kind: down, at: [leaf1], schedule: {at: 1ms}", false},
		{"at some time", "kind: down, at: [leaf1], schedule: {at: 1ms, for: 1ms, every: 7ms}", "kind: down, at: [leaf1], schedule: {for: 1ms, every: 5ms}", true},
		{"never", "kind: down, at: [leaf1], schedule: {at: 2ms, for: 1ms, every: 10ms}", "kind: down, at: [leaf1], schedule: {for: 1ms, every: 5ms, count: 5}", false},
		{"perhaps, by jitter", "kind: down, at: [leaf1], schedule: {for: 1ms, jitter: 2ms}", "kind: down, at: [leaf1], schedule: {at: 500us, for: 1ms}", false},
		{"an event says when", "kind: down, at: [leaf1], schedule: {when: first cnp at h1}", "kind: down, at: [leaf1]", false},
		{"the same line", "kind: rate, rate: 1Gbps, at: ['leaf1-spine1'], direction: egress", "kind: rate, rate: 2Gbps, at: ['spine1-leaf1'], direction: ingress", true},
		{"the line's other direction", "kind: rate, rate: 1Gbps, at: ['leaf1-spine1'], direction: egress", "kind: rate, rate: 2Gbps, at: ['spine1-leaf1'], direction: egress", false},
		{"the same queues", "kind: ecn-off, at: [leaf1]", "kind: ecn-thresholds, kmin: 1KB, kmax: 2KB, pmax: 1%, at: ['leaf1:eth0'], priorities: [3]", true},
		{"other priorities", "kind: ecn-off, at: [leaf1], priorities: [4]", "kind: ecn-thresholds, kmin: 1KB, kmax: 2KB, pmax: 1%, at: ['leaf1:eth0'], priorities: [3]", false},
		{"CNPs are priority 6", "kind: cnp-starved, at: [leaf1]", "kind: stuck-queue, priorities: [6], at: [leaf1]", true},
		{"nobody could heal it", "kind: process-kill, at: [h1]", "kind: ack-delay, delay: 1us, at: ['h1:eth0']", true},
		{"another host", "kind: process-kill, at: [h1]", "kind: ack-delay, delay: 1us, at: ['h2:eth0']", false},
		{"losses add up", "kind: loss, probability: 1%, at: [leaf1]", "kind: loss, probability: 1%, at: [leaf1]", false},
	} {
		all := append(expand(t, scope, "{name: a, "+c.a+"}"), expand(t, scope, "{name: b, "+c.b+"}")...)
		for range 2 {
			got := Together(all, scope)
			if (got[1] != nil) != c.refused || got[0] != nil {
				t.Errorf("%s: %s with %s: %v, want refused: %v", c.why, brief(all[0]), brief(all[1]), got, c.refused)
			}
			all[0], all[1] = all[1], all[0]
		}
	}
}

func TestOverlappingIsSymmetrical(t *testing.T) {
	scope := fabric(t)
	var all []Target
	for _, text := range []string{"kind: loss, probability: 1%, at: ['*'], direction: egress", "kind: loss, probability: 1%, at: ['leaf*']", "kind: down, at: ['*']", "kind: ecn-off, at: ['*']",
		"kind: watchdog-off, at: ['*']", "kind: cnp-off, at: ['*']", "kind: process-pause, at: ['*']"} {
		s := decode(t, "{name: x, "+text+"}")
		some, err := Aim(&s, scope)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	for _, a := range all {
		if !a.Overlaps(a) {
			t.Errorf("%v %v doesn't overlap itself", a.Type, a)
		}
		for _, b := range all {
			if a.Overlaps(b) != b.Overlaps(a) {
				t.Errorf("%v %v overlaps %v %v one way alone", a.Type, a, b.Type, b)
			}
		}
	}
}
