package faults

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/rocebed/rocebed/topo/strict"
)

// examples has a whole and valid fault of each kind, and of each way to write one.
var examples = func() []string {
	out := []string{
		"{name: b, kind: loss, at: ['leaf1:eth0'], every_nth: 256, may_miss: true}",
		"{name: c, kind: loss, at: ['*:*'], gilbert_elliott: {p: 1%, r: 30%, loss_bad: 80%, loss_good: 0.01%}}",
		"{name: d, kind: delay, at: ['leaf1-spine2'], delay: 10us, jitter: 2us, distribution: pareto, schedule: {at: 1ms, for: 2ms}}",
		"{name: f, kind: duplicate, at: [leaf1], direction: both, probability: 3%}",
		"{name: g, kind: corrupt, at: [leaf1], direction: ingress, probability: 100%}",
		"{name: k, kind: reorder, at: [leaf1], probability: 1%, window: 3}",
		"{name: l, kind: flap, at: [leaf1], period: 1ms, duty: 25%, distribution: exponential}",
		"{name: m, kind: pfc-thresholds, at: [leaf1], alpha: 1/64, xon: 0B, priorities: [3, 4]}",
		"{name: n, kind: loss, at: [leaf1], one_way: true, random: 2, probability: 1%, schedule: {when: first cnp at h1, until: metric np_cnp_sent > 100}}",
		"{name: o, kind: loss, at: [leaf1], probability: 1%, schedule: {for: 1ms, every: 5ms, jitter: 2ms, count: 3, ramp: {to: 5%, steps: 4}}}",
		"{name: p, kind: packets, at: [leaf1], data-pkt-events: [{qpn: 0, psn: 4, type: ecn, iter: 1}, {qpn: 2, psn: 3, type: drop, iter: 1}]}",
		"{name: q, kind: packets, at: [leaf1], events: [{match: {class: [ack, 'nak:seq'], message: last, dscp: 26, ecn: ce, every: 2, ordinal: 3..9}, do: [mark-ce, hold 3 1ms]}]}",
		"{name: r, sequence: [{name: a, kind: down, at: [leaf1], schedule: {for: 1ms}}, {kind: ecn-off, at: [leaf1], schedule: {at: 1ms}}]}",
		"{name: s, at: [leaf1], schedule: {at: 1ms}, parallel: [{kind: loss, probability: 1%}, {kind: delay, delay: 1us}]}",
		"{name: t, at: [leaf1], storm: {kinds: [loss, down], rate: 5/ms, duration: 10ms, budget: 20, at_once: 3}}",
	}
	for _, d := range Defs() {
		out = append(append(out, d.Example), d.variants()...)
	}
	return out
}()

func decode(t testing.TB, text string) Spec {
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
		again := decode(t, string(out))
		if !reflect.DeepEqual(s, again) {
			t.Errorf("%s came back as\n%s", text, out)
		}
	}
}

func TestWhatAFaultLacksIsAskedForInWords(t *testing.T) {
	for text, want := range map[string]string{
		"{name: x, kind: loss, probability: 1%}":                                                           "at: a fault needs it: where it strikes",
		"{name: x, kind: loss, at: [h1]}":                                                                  "a loss fault needs one of probability, every_nth and gilbert_elliott",
		"{name: x, kind: incast-burst, at: [h1], to: [h2]}":                                                "an incast-burst fault needs it",
		"{name: x, kind: mtu, at: [h1]}":                                                                   "an mtu fault needs it",
		`{name: "x\e[31m", kind: down, at: [h1]}`:                                                          `name: "x\x1b[31m" has characters that nobody can read`,
		"{name: x, kind: down, at: [h1], schedule: {when: fault x healed}}":                                "schedule.when: the fault waits for itself",
		"{name: x, kind: loss, at: [h1], probability: 1%, schedule: {ramp: {to: 2%, steps: 2}, for: 1ms}}": "",
	} {
		s := decode(t, text)
		if err := s.Validate(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// give sets a key to something.
func give(t *testing.T, k *Key, s *Spec) {
	t.Helper()
	v := k.value(s)
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x"), reflect.Zero(v.Type().Elem()))
	case reflect.String:
		v.SetString("x")
	case reflect.Struct:
		v.Field(0).SetInt(1)
	default:
		switch {
		case v.CanFloat():
			v.SetFloat(0.5)
		case v.CanInt():
			v.SetInt(1)
		default:
			v.SetUint(1)
		}
	}
	if !k.given(s) {
		t.Fatalf("the key %s was not given", k.Name)
	}
}

func TestAKeyThatTheKindDoesNotUseIsRefusedByName(t *testing.T) {
	known := slices.Clone(common)
	for _, k := range Keys() {
		known = append(known, k.Name)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Spec]()) {
		key, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if opts != "inline" && !slices.Contains(known, key) {
			t.Errorf("key %s is neither common nor of some kinds: Validate doesn't know it", key)
		}
	}
	for _, d := range Defs() {
		for i := range keyTable {
			k := &keyTable[i]
			if _, used := d.Use(k.Name); used {
				continue
			}
			s := decode(t, d.Example)
			give(t, k, &s)
			if paths := problemPaths(s.Validate()); !slices.Contains(paths, k.Name) {
				t.Errorf("a %s fault with %s: problems at %v, want one at %s", d.Kind, k.Name, paths, k.Name)
			}
		}
	}
}

func TestEveryKeyIsSomeKinds(t *testing.T) {
	for _, k := range Keys() {
		if !slices.ContainsFunc(Defs(), func(d Def) bool { _, ok := d.Use(k.Name); return ok }) {
			t.Errorf("no kind uses %s", k.Name)
		}
	}
	for _, d := range Defs() {
		for _, u := range d.Keys {
			if keyByName[u.Key] == nil {
				t.Errorf("%s uses %s, which is no key", d.Kind, u.Key)
			}
		}
		if d.Doc == "" || d.Example == "" || d.Group == "" || d.Target == "" {
			t.Errorf("%s is not defined whole", d.Kind)
		}
	}
}

func TestProblemsNameTheirKey(t *testing.T) {
	for text, want := range map[string]string{
		"{kind: down, at: [a]}":                                                                      "name",
		"{name: x, kind: down}":                                                                      "at",
		"{name: x, kind: down, at: ['[']}":                                                           "at",
		"{name: x, kind: los, at: [a]}":                                                              "kind",
		"{name: x, kind: loss, at: [a]}":                                                             "probability",
		"{name: x, kind: loss, at: [a], probability: 1%, every_nth: 3}":                              "probability",
		"{name: x, kind: loss, at: [a], every_nth: -1}":                                              "every_nth",
		"{name: x, kind: loss, at: [a], gilbert_elliott: {p: 1%, r: 1%}}":                            "gilbert_elliott.loss_bad",
		"{name: x, kind: loss, at: [a], gilbert_elliott: {r: 1%, loss_bad: 1%}}":                     "gilbert_elliott.p",
		"{name: x, kind: loss, at: [a], direction: up, probability: 1%}":                             "direction",
		"{name: x, kind: down, at: [a], direction: egress}":                                          "direction",
		"{name: x, kind: delay, at: [a]}":                                                            "delay",
		"{name: x, kind: delay, at: [a], delay: 1us, jitter: 2us}":                                   "jitter",
		"{name: x, kind: delay, at: [a], delay: 1us, distribution: normal}":                          "distribution",
		"{name: x, kind: delay, at: [a], delay: 2us, jitter: 1us, distribution: gauss}":              "distribution",
		"{name: x, kind: reorder, at: [a], delay: 1us}":                                              "probability",
		"{name: x, kind: reorder, at: [a], probability: 1%}":                                         "delay",
		"{name: x, kind: reorder, at: [a], probability: 1%, delay: 1us, gap: -1}":                    "gap",
		"{name: x, kind: rate, at: [a]}":                                                             "rate",
		"{name: x, kind: flap, at: [a], down: 1us}":                                                  "period",
		"{name: x, kind: flap, at: [a], period: 1us, down: 1us}":                                     "down",
		"{name: x, kind: down, at: [a], schedule: {every: 1us}}":                                     "schedule.for",
		"{name: x, kind: down, at: [a], schedule: {for: 2us, every: 1us}}":                           "schedule.every",
		"{name: x, kind: down, at: [a], schedule: {count: 3}}":                                       "schedule.count",
		"{name: x, kind: down, at: [a], schedule: {for: 1us, every: 2us, count: -3}}":                "schedule.count",
		"{name: x, kind: down, at: ['']}":                                                            "at",
		"{name: x, kind: loss, at: [a], gilbert_elliott: {p: 1%, loss_bad: 1%}}":                     "gilbert_elliott.r",
		"{name: x, kind: down, at: [a], schedule: {for: 1ns, every: 2ns}}":                           "schedule.every",
		"{name: x, kind: flap, at: [a], period: 2ns, down: 1ns}":                                     "period",
		"{name: x, kind: flap, at: [a], period: 1ms, down: 1us, duty: 1%}":                           "down",
		"{name: x, kind: flap, at: [a], period: 1ms, duty: 100%}":                                    "duty",
		"{name: x, kind: flap, at: [a], period: 1ms, duty: 1%, distribution: normal}":                "distribution",
		"{name: x, kind: unidirectional, at: [a]}":                                                   "direction",
		"{name: x, kind: bit-error, at: [a]}":                                                        "ber",
		"{name: x, kind: ecn-off, at: [a], direction: egress}":                                       "direction",
		"{name: x, kind: ecn-off, at: [a], priorities: [3, 3]}":                                      "priorities",
		"{name: x, kind: ecn-thresholds, at: [a], kmin: 2KB, kmax: 1KB, pmax: 1%}":                   "kmin",
		"{name: x, kind: ecn-thresholds, at: [a], kmin: 2KB, kmax: 4KB}":                             "pmax",
		"{name: x, kind: dscp-map, at: [a], dscp_map: {64: 3}}":                                      "dscp_map.64",
		"{name: x, kind: dscp-map, at: [a], dscp_map: {26: 8}}":                                      "dscp_map.26",
		"{name: x, kind: pfc-off, at: [a], half: sned}":                                              "half",
		"{name: x, kind: pfc-thresholds, at: [a]}":                                                   "xoff",
		"{name: x, kind: pfc-thresholds, at: [a], xoff: 0B, alpha: 1}":                               "alpha",
		"{name: x, kind: pcie-downgrade, at: [a], pcie: gen9 x4}":                                    "pcie",
		"{name: x, kind: pcie-downgrade, at: [a], pcie: gen3 x5}":                                    "pcie",
		"{name: x, kind: dcqcn-params, at: [a], dcqcn: {rpg_ai_rat: 5Mbps}}":                         "dcqcn.rpg_ai_rat",
		"{name: x, kind: wrong-gid, at: [a], addr: nowhere}":                                         "addr",
		"{name: x, kind: gpu-straggler, at: [a], delay: 1us, gpus: [0, 0]}":                          "gpus",
		"{name: x, kind: slow-clock, at: [a], speed: 100%}":                                          "speed",
		"{name: x, kind: udp-traffic, at: [a], to: [b], rate: 1Gbps, dscp: 64}":                      "dscp",
		"{name: x, kind: udp-traffic, at: [a], to: [b], rate: 1Gbps, size: 70KB}":                    "size",
		"{name: x, kind: packets, at: [a]}":                                                          "events",
		"{name: x, kind: packets, at: [a], events: [{match: {psn: 16777216}, do: drop}]}":            "events[0].match.psn",
		"{name: x, kind: packets, at: [a], events: [{do: [drop, mark-ce]}]}":                         "events[0].do",
		"{name: x, kind: packets, at: [a], data-pkt-events: [{type: dorp}]}":                         "data-pkt-events[0].type",
		"{name: x, kind: down, at: [a], one_way: true}":                                              "one_way",
		"{name: x, kind: loss, probability: 1%, at: [a], one_way: true, direction: both}":            "one_way",
		"{name: x, kind: loss, probability: 1%, at: ['teir=leaf']}":                                  "at",
		"{name: x, kind: loss, probability: 1%, at: ['path=h1']}":                                    "at",
		"{name: x, kind: down, at: [a], schedule: {for: 3us, every: 5us, jitter: 2us}}":              "schedule.jitter",
		"{name: x, kind: down, at: [a], schedule: {for: 3us, ramp: {to: 1%}}}":                       "schedule.ramp",
		"{name: x, kind: rate, at: [a], rate: 1Gbps, schedule: {ramp: {to: 2Gbps}}}":                 "schedule.ramp",
		"{name: x, kind: rate, at: [a], rate: 1Gbps, schedule: {for: 1ms, ramp: {to: 1%}}}":          "schedule.ramp.to",
		"{name: x, kind: loss, at: [a], probability: 1%, schedule: {for: 1ms, ramp: {to: 0%}}}":      "schedule.ramp.to",
		"{name: x, kind: down, at: [a], schedule: {when: fault y healed, until: fault y healed}}":    "schedule.until",
		"{name: x, kind: down, storm: {rate: 1/ms, duration: 1ms}, at: [a]}":                         "storm",
		"{name: x, storm: {rate: 1/ms, duration: 1ms, kinds: [downn]}, at: [a]}":                     "storm.kinds[0]",
		"{name: x, storm: {rate: 1/ms, duration: 1ms, kinds: [packets]}, at: [a]}":                   "storm.kinds[0]",
		"{name: x, storm: {rate: 1000/us, duration: 1s}, at: [a]}":                                   "storm.rate",
		"{name: x, storm: {rate: 1/ms, duration: 1ms}}":                                              "at",
		"{name: x, sequence: [{kind: down, at: [a]}, {kind: down, at: [a]}]}":                        "sequence[0].schedule",
		"{name: x, sequence: [{kind: down, at: [a], schedule: {for: 1ms}}, {kind: downn, at: [a]}]}": "sequence[1].kind",
		"{name: x, parallel: [{name: y, kind: down, at: [a]}, {name: y, kind: down, at: [a]}]}":      "parallel[1].name",
		"{name: x, probability: 1%, parallel: [{kind: down, at: [a]}]}":                              "probability",
		"{name: x, schedule: {for: 1ms}, parallel: [{kind: down, at: [a]}]}":                         "schedule",
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
