package faults

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/rocebed/rocebed/topo/strict"
)

// examples has a whole and valid fault of each kind and loss model.
var examples = []string{
	"{name: a, kind: loss, at: ['leaf1:eth0'], direction: egress, probability: 1%}",
	"{name: b, kind: loss, at: ['leaf1:eth0'], every_nth: 256, may_miss: true}",
	"{name: c, kind: loss, at: ['*:*'], gilbert_elliott: {p: 1%, r: 30%, loss_bad: 80%, loss_good: 0.01%}}",
	"{name: d, kind: delay, at: ['leaf1-spine2'], delay: 10us, jitter: 2us, distribution: pareto, schedule: {at: 1ms, for: 2ms}}",
	"{name: e, kind: reorder, at: [leaf1], probability: 2.5%, delay: 20us, gap: 5}",
	"{name: f, kind: duplicate, at: [leaf1], direction: both, probability: 3%}",
	"{name: g, kind: corrupt, at: [leaf1], direction: ingress, probability: 100%}",
	"{name: h, kind: rate, at: [leaf1], rate: 25Gbps, schedule: {at: 1ms, for: 2ms, every: 5ms, count: 3}}",
	"{name: i, kind: down, at: ['leaf1:eth1']}",
	"{name: j, kind: flap, at: ['leaf1:eth1'], period: 4ms, down: 1500us}",
}

func decode(t *testing.T, text string) Spec {
	t.Helper()
	var s Spec
	if err := strict.Decode("fault.yaml", []byte(text), &s); err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
	return s
}

func TestEveryKindHasAValidSpec(t *testing.T) {
	seen := map[Kind]bool{}
	for _, text := range examples {
		s := decode(t, text)
		seen[s.Kind] = true
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, k := range Kinds() {
		if !seen[k] {
			t.Errorf("no example of kind %s", k)
		}
	}
}

func TestSpecsSurviveYAML(t *testing.T) {
	for _, text := range examples {
		s := decode(t, text)
		out, err := yaml.Marshal(s)
		if err != nil {
			t.Fatalf("marshal %s: %v", text, err)
		}
		var again Spec
		if err := yaml.UnmarshalWithOptions(out, &again, yaml.Strict()); err != nil {
			t.Fatalf("read back %s: %v", out, err)
		}
		if !reflect.DeepEqual(s, again) {
			t.Errorf("%s came back as\n%s", text, out)
		}
	}
}

// keys are the yaml keys of Spec that some kinds use and others don't, each with a way to set it.
var keys = map[string]func(*Spec){
	"probability":     func(s *Spec) { s.Probability = 0.5 },
	"every_nth":       func(s *Spec) { s.EveryNth = 2 },
	"gilbert_elliott": func(s *Spec) { s.GE = &GilbertElliott{P: 0.1, R: 0.1, LossBad: 1} },
	"delay":           func(s *Spec) { s.Delay = time.Second },
	"jitter":          func(s *Spec) { s.Jitter = time.Millisecond },
	"distribution":    func(s *Spec) { s.Distribution = "normal" },
	"gap":             func(s *Spec) { s.Gap = 3 },
	"rate":            func(s *Spec) { s.Rate = 1e9 },
	"period":          func(s *Spec) { s.Period = time.Second },
	"down":            func(s *Spec) { s.Down = time.Millisecond },
}

func TestAKeyThatTheKindDoesNotUseIsRefusedByName(t *testing.T) {
	common := []string{"name", "kind", "at", "direction", "may_miss", "schedule"}
	for f := range reflect.TypeFor[Spec]().Fields() {
		key := f.Tag.Get("yaml")
		if _, ok := keys[key]; !ok && !slices.Contains(common, key) {
			t.Errorf("key %s is neither common nor of some kinds: Validate doesn't know it", key)
		}
	}
	for _, text := range examples {
		for key, set := range keys {
			s := decode(t, text)
			if slices.Contains(uses[s.Kind], key) {
				continue
			}
			set(&s)
			if paths := problemPaths(s.Validate()); !slices.Contains(paths, key) {
				t.Errorf("a %s fault with %s: problems at %v, want one at %s", s.Kind, key, paths, key)
			}
		}
	}
}

func TestProblemsNameTheirKey(t *testing.T) {
	for text, want := range map[string]string{
		"{kind: down, at: [a]}":                                                         "name",
		"{name: x, kind: down}":                                                         "at",
		"{name: x, kind: down, at: ['[']}":                                              "at",
		"{name: x, kind: los, at: [a]}":                                                 "kind",
		"{name: x, kind: loss, at: [a]}":                                                "probability",
		"{name: x, kind: loss, at: [a], probability: 1%, every_nth: 3}":                 "probability",
		"{name: x, kind: loss, at: [a], every_nth: -1}":                                 "every_nth",
		"{name: x, kind: loss, at: [a], gilbert_elliott: {p: 1%, r: 1%}}":               "gilbert_elliott.loss_bad",
		"{name: x, kind: loss, at: [a], gilbert_elliott: {r: 1%, loss_bad: 1%}}":        "gilbert_elliott.p",
		"{name: x, kind: loss, at: [a], direction: up, probability: 1%}":                "direction",
		"{name: x, kind: down, at: [a], direction: egress}":                             "direction",
		"{name: x, kind: delay, at: [a]}":                                               "delay",
		"{name: x, kind: delay, at: [a], delay: 1us, jitter: 2us}":                      "jitter",
		"{name: x, kind: delay, at: [a], delay: 1us, distribution: normal}":             "distribution",
		"{name: x, kind: delay, at: [a], delay: 2us, jitter: 1us, distribution: gauss}": "distribution",
		"{name: x, kind: reorder, at: [a], delay: 1us}":                                 "probability",
		"{name: x, kind: reorder, at: [a], probability: 1%}":                            "delay",
		"{name: x, kind: reorder, at: [a], probability: 1%, delay: 1us, gap: -1}":       "gap",
		"{name: x, kind: rate, at: [a]}":                                                "rate",
		"{name: x, kind: flap, at: [a], down: 1us}":                                     "period",
		"{name: x, kind: flap, at: [a], period: 1us, down: 1us}":                        "down",
		"{name: x, kind: down, at: [a], schedule: {every: 1us}}":                        "schedule.for",
		"{name: x, kind: down, at: [a], schedule: {for: 2us, every: 1us}}":              "schedule.every",
		"{name: x, kind: down, at: [a], schedule: {count: 3}}":                          "schedule.count",
		"{name: x, kind: down, at: [a], schedule: {for: 1us, every: 2us, count: -3}}":   "schedule.count",
		"{name: x, kind: down, at: ['']}":                                               "at",
		"{name: x, kind: loss, at: [a], gilbert_elliott: {p: 1%, loss_bad: 1%}}":        "gilbert_elliott.r",
		"{name: x, kind: down, at: [a], schedule: {for: 1ns, every: 2ns}}":              "schedule.every",
		"{name: x, kind: flap, at: [a], period: 2ns, down: 1ns}":                        "period",
	} {
		s := decode(t, text)
		if paths := problemPaths(s.Validate()); !slices.Equal(paths, []string{want}) {
			t.Errorf("%s: problems at %v, want one at %s", text, paths, want)
		}
	}
}

func TestNegativeTimesAreRefused(t *testing.T) {
	for want, s := range map[string]Schedule{"at": {At: -1}, "for": {For: -1}, "every": {Every: -1}} {
		if paths := problemPaths(s.validate()); !slices.Equal(paths, []string{want}) {
			t.Errorf("%+v: problems at %v, want one at %s", s, paths, want)
		}
	}
}

func TestAMisspeltKindIsSuggested(t *testing.T) {
	s := decode(t, "{name: x, kind: los, at: [a]}")
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), `did you mean "loss"`) {
		t.Errorf("got %v, want a suggestion of loss", err)
	}
}

func problemPaths(err error) []string {
	var paths []string
	for _, e := range flatten(err) {
		var pe *strict.PathError
		if errors.As(e, &pe) {
			paths = append(paths, pe.Path)
		} else {
			paths = append(paths, "no path: "+e.Error())
		}
	}
	return paths
}

func flatten(err error) []error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range many.Unwrap() {
			out = append(out, flatten(e)...)
		}
		return out
	}
	return []error{err}
}
