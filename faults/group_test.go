package faults

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func expand(t *testing.T, scope Scope, text string) []Spec {
	t.Helper()
	s := decode(t, text)
	all, err := Expand(&s, scope)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return all
}

func TestWhatAGroupAllowsItsFaultsMay(t *testing.T) {
	for _, s := range expand(t, fabric(t), "{name: x, may_miss: true, at: [leaf1], direction: egress, parallel: [{kind: loss, probability: 1%}, {kind: loss, probability: 1%, at: [leaf2]}]}") {
		if own := s.At[0] == "leaf2"; !s.MayMiss || (s.Direction == Egress) == own {
			t.Errorf("%s: may miss: %v, direction %q", brief(s), s.MayMiss, s.Direction)
		}
	}
}

// brief is what an expanded fault came to.
func brief(s Spec) string {
	when := "at"
	if s.Schedule.When != nil {
		when = s.Schedule.When.String() + ","
	}
	return fmt.Sprintf("%s %s %s %v on %v", s.Name, s.Kind, when, s.Schedule.At, s.At)
}

func TestGroupsBecomeFaultsThatWaitForEachOther(t *testing.T) {
	scope := fabric(t)
	for text, want := range map[string][]string{
		"{name: x, kind: down, at: ['leaf1:eth0']}": {"x down at 0s on [leaf1:eth0]"},
		"{name: s, at: [leaf1], schedule: {at: 5ms}, sequence: [{kind: ecn-off, schedule: {at: 1ms, for: 2ms}}, {name: boot, kind: reboot, down: 1ms, schedule: {at: 3ms, for: 1ms}}, {kind: down, at: ['leaf2-spine1']}]}": {
			"s/1 ecn-off at 6ms on [leaf1]", "s/boot reboot fault s/1 healed, 3ms on [leaf1]", "s/3 down fault s/boot healed, 0s on [leaf2-spine1]"},
		"{name: p, at: [leaf1], schedule: {when: workload w started, at: 1ms}, parallel: [{kind: ecn-off}, {kind: watchdog-off, schedule: {at: 2ms}}, {kind: hash-seed, schedule: {when: first cnp at h1}}]}": {
			"p/1 ecn-off workload w started, 1ms on [leaf1]", "p/2 watchdog-off workload w started, 3ms on [leaf1]", "p/3 hash-seed first cnp at h1, 0s on [leaf1]"},
		"{name: n, at: [leaf1], sequence: [{parallel: [{kind: ecn-off, schedule: {for: 1ms}}, {kind: watchdog-off, schedule: {for: 2ms}}]}, {name: z, sequence: [{kind: hash-seed, schedule: {for: 1ms}}, {kind: down}]}]}": {
			"n/1/1 ecn-off at 0s on [leaf1]", "n/1/2 watchdog-off at 0s on [leaf1]", "n/z/1 hash-seed fault n/1 healed, 0s on [leaf1]", "n/z/2 down fault n/z/1 healed, 0s on [leaf1]"},
	} {
		var got []string
		for _, s := range expand(t, scope, text) {
			got = append(got, brief(s))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\nbecomes %q\nwant    %q", text, got, want)
		}
	}
}

const soak = "{name: soak, at: ['*'], schedule: {at: 1ms}, storm: {kinds: [loss, rate, down, delay, mtu, unidirectional, reboot, ecn-off, pfc-storm, ack-delay], rate: 20/ms, duration: 20ms, each: 1ms, budget: 300, at_once: 15}}"

// Whatever is drawn, every fault of a storm is one that validates and strikes one target, within the storm; those that don't compose
// never meet; and all of it is the seed's.
func TestAStormIsMadeOfFaultsThatCanBe(t *testing.T) {
	for seed := range uint64(8) {
		scope := fabric(t)
		scope.Seed = seed
		all := expand(t, scope, soak)
		if len(all) < 100 || len(all) > 300 {
			t.Fatalf("seed %d: %d faults; 20/ms for 20ms with a budget of 300 and 15 at once", seed, len(all))
		}
		targets := make([]Target, len(all))
		for i := range all {
			s := &all[i]
			if err := s.Validate(); err != nil {
				t.Fatalf("seed %d: %+v: %v", seed, s, err)
			}
			got, err := Aim(s, scope)
			if err != nil || len(got) != 1 {
				t.Fatalf("seed %d: %s strikes %v, %v", seed, brief(*s), got, err)
			}
			targets[i] = got[0]
			if s.Down > s.Schedule.For || !s.MayMiss {
				t.Fatalf("seed %d: %s is down for %v of %v, may miss: %v", seed, brief(*s), s.Down, s.Schedule.For, s.MayMiss)
			}
			if w, _ := s.Schedule.Nth(0); w.Start < ms || w.End > 21*ms || w.Length() <= 0 || i > 0 && w.Start < all[i-1].Schedule.At {
				t.Fatalf("seed %d: %s is in force in %v", seed, brief(*s), w)
			}
		}
		for j := range all {
			atOnce := 1
			for i := range j {
				a, b := all[i].Schedule, all[j].Schedule
				if a.At+a.For <= b.At {
					continue
				}
				if atOnce++; Compose(all[i].Kind, all[j].Kind) != nil && targets[i].Overlaps(targets[j]) {
					t.Fatalf("seed %d: %s and %s meet", seed, brief(all[i]), brief(all[j]))
				}
			}
			if atOnce > 15 {
				t.Fatalf("seed %d: %d faults at once", seed, atOnce)
			}
		}
		if refused := Together(all, scope); len(refused) != 0 {
			t.Fatalf("seed %d: refused together: %v", seed, refused)
		}
		if !reflect.DeepEqual(all, expand(t, scope, soak)) {
			t.Fatalf("seed %d: the same storm twice differs", seed)
		}
	}
}

func TestAStormHasItsRateAndDrawsEveryKind(t *testing.T) {
	scope := fabric(t)
	count := map[Kind]int{}
	total, longest := 0, time.Duration(0)
	var sum time.Duration
	for seed := range uint64(40) {
		scope.Seed = seed
		for _, s := range expand(t, scope, "{name: s, at: ['leaf*'], storm: {rate: 5/ms, duration: 20ms, each: 100us}}") {
			count[s.Kind]++
			total++
			sum += s.Schedule.For
			longest = max(longest, s.Schedule.For)
		}
	}
	// 4000 on average, standard deviation 63, and a few that found no place.
	if total < 3600 || total > 4320 {
		t.Errorf("%d faults in 40 storms of 100 on average", total)
	}
	if m := sum / time.Duration(total); m < 92*us || m > 108*us || longest < 400*us {
		t.Errorf("they last %v on average and %v at most, want 100µs on average, exponentially", m, longest)
	}
	for _, k := range StormKinds() {
		if count[k] < total/len(StormKinds())/2 {
			t.Errorf("%s came %d times of %d", k, count[k], total)
		}
	}
}

func TestEveryKindThatAStormDrawsCanBeDrawn(t *testing.T) {
	scope := fabric(t)
	for _, k := range Kinds() {
		if draws[k] == nil {
			continue
		}
		all := expand(t, scope, fmt.Sprintf("{name: s, at: ['*'], storm: {kinds: [%s], rate: 10/ms, duration: 10ms}}", k))
		for i := range all {
			if err := all[i].Validate(); err != nil || all[i].Kind != k {
				t.Errorf("%s: %+v: %v", k, all[i], err)
			}
		}
		if len(all) == 0 {
			t.Errorf("a storm of %s made none", k)
		}
	}
}

func TestGroupsThatCannotBeAreRefusedAtTheirPlace(t *testing.T) {
	scope := fabric(t)
	for text, want := range map[string]string{
		"{name: x, parallel: [{kind: down, at: [leaf9]}]}":           `parallel[0].at: "leaf9" selects no port`,
		"{name: x, at: [leaf9], storm: {rate: 1/ms, duration: 1ms}}": `storm.kinds[0].at: "leaf9" selects`,
		"{name: x, parallel: []}":                                    "parallel: there is no fault in it",
	} {
		s := decode(t, text)
		if _, err := Expand(&s, scope); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
