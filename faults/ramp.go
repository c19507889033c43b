package faults

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/rocebed/rocebed/topo/strict"
)

// Ramp takes a fault from its own value to another one, in steps of equal length, over each of its windows. The fault is
// applied anew for each step.
type Ramp struct {
	// Key is what changes: probability, rate, delay or ber; default the one of them that the fault has.
	Key   string `yaml:"key"`
	To    Knob   `yaml:"to,required"`   // in the key's unit
	Steps int    `yaml:"steps,nonzero"` // default 10; the first has the fault's own value, the last To
}

// rampKeys are the keys that a ramp can change.
var rampKeys = []string{"probability", "rate", "delay", "ber"}

const (
	defaultSteps = 10
	maxSteps     = 1000
)

func (r *Ramp) steps() int {
	if r.Steps == 0 {
		return defaultSteps
	}
	return r.Steps
}

// key is what a ramp changes of a spec; empty where there is nothing.
func (r *Ramp) key(s *Spec) string {
	if r.Key != "" {
		return r.Key
	}
	for _, k := range rampKeys {
		if keyByName[k].given(s) {
			return k
		}
	}
	return ""
}

func (s *Spec) validateRamp(d *Def) error {
	r := s.Schedule.Ramp
	if r == nil || d == nil {
		return nil
	}
	wrong := func(key, format string, args ...any) error {
		return strict.At("schedule."+strict.Join("ramp", key), format, args...)
	}
	key := r.key(s)
	_, used := d.Use(key)
	switch {
	case key == "":
		return wrong("", "%s fault has nothing that a ramp changes (%s)", d.Kind.article(), list(rampKeys))
	case !slices.Contains(rampKeys, key):
		return wrong("key", "a ramp doesn't change %q%s", key, strict.DidYouMean(key, rampKeys))
	case !used || !keyByName[key].given(s):
		return wrong("key", "the fault has no %s to begin with", key)
	case s.Schedule.For == 0:
		return wrong("", "needs schedule.for: its steps share that time")
	case r.steps() < 2 || r.steps() > maxSteps:
		return wrong("steps", "must be from 2 to %d", maxSteps)
	case s.Schedule.For/time.Duration(r.steps()) < shortest:
		return wrong("steps", "a step must last at least %v", shortest)
	}
	from, to := *s, *s
	if err := keyByName[key].set(&to, string(r.To)); err != nil {
		return wrong("to", "%w", err)
	}
	if keyByName[key].value(&from).Equal(keyByName[key].value(&to)) {
		return wrong("to", "is where it begins")
	}
	to.Schedule.Ramp = nil
	v := &validator{spec: &to}
	v.kind(d)
	for _, err := range v.errs {
		return wrong("to", "%w", err)
	}
	return nil
}

// set reads a value in the key's unit.
func (k *Key) set(s *Spec, text string) error {
	v := k.value(s)
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		d, err := strict.ParseDuration(text)
		v.SetInt(int64(d))
		return err
	}
	return fmt.Errorf("%s has no unit", k.Name)
}

// stepOf is the fault in the k-th step of a ramp.
func (s *Spec) stepOf(k int) Spec {
	r, out := s.Schedule.Ramp, *s
	key := keyByName[r.key(s)]
	end := *s
	if key.set(&end, string(r.To)) != nil { // Validate refused it
		return out
	}
	out.Schedule.Ramp = nil
	share := float64(k) / float64(r.steps()-1)
	a, b, v := key.value(s), key.value(&end), key.value(&out)
	switch {
	case v.CanFloat():
		v.SetFloat(a.Float() + (b.Float()-a.Float())*share)
	case v.CanUint():
		v.SetUint(uint64(float64(a.Uint()) + (float64(b.Uint())-float64(a.Uint()))*share))
	default:
		v.SetInt(int64(float64(a.Int()) + (float64(b.Int())-float64(a.Int()))*share))
	}
	return out
}
