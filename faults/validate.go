package faults

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// Validate says what is wrong with the fault on its own, whatever the topology. Every
// problem is a strict.PathError whose path is the key; several are joined.
func (s *Spec) Validate() error {
	v := &validator{spec: s}
	if s.Name == "" {
		v.wrong("name", "a fault needs a name")
	}
	if strings.ContainsFunc(s.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		v.wrong("name", "%q has characters that nobody can read", s.Name)
	}
	if w := s.Schedule.When; w != nil && w.On == OnFault && w.Name == s.Name && s.Name != "" {
		v.wrong("schedule.when", "the fault waits for itself")
	}
	if s.made() {
		v.group()
		return errors.Join(v.errs...)
	}
	d := DefOf(s.Kind)
	v.aim(d)
	if d == nil {
		v.errs = append(v.errs, s.Kind.unknown())
	} else {
		v.kind(d)
	}
	v.errs = append(v.errs, strict.Under("schedule", s.Schedule.validate()), s.validateRamp(d))
	return errors.Join(v.errs...)
}

type validator struct {
	spec *Spec
	errs []error
}

func (v *validator) wrong(key, format string, args ...any) {
	v.errs = append(v.errs, strict.At(key, format, args...))
}

// kind holds a spec against its kind's definition.
func (v *validator) kind(d *Def) {
	v.unused(d)
	v.wanted(d)
	for _, u := range d.Keys {
		if k := keyByName[u.Key]; k.given(v.spec) {
			v.unit(d, k)
		}
	}
	if d.check != nil {
		d.check(v)
	}
}

// unused refuses keys that the kind doesn't use.
func (v *validator) unused(d *Def) {
	for i := range keyTable {
		k := &keyTable[i]
		if _, used := d.Use(k.Name); used || !k.given(v.spec) {
			continue
		}
		v.wrong(k.Name, "%s fault doesn't use it%s", d.Kind.article(), strict.DidYouMean(k.Name, d.keyNames()))
	}
}

// wanted asks for the keys that the kind needs.
func (v *validator) wanted(d *Def) {
	for _, u := range d.Keys {
		if k := keyByName[u.Key]; u.Need == Required && !k.given(v.spec) {
			v.wrong(u.Key, "%s fault needs it: %s%s", d.Kind.article(), d.doc(u), example(k.Unit))
		}
	}
	for _, n := range []Need{OneOf, AnyOf} {
		names := d.keyNames(n)
		given := 0
		for _, name := range names {
			if keyByName[name].given(v.spec) {
				given++
			}
		}
		switch {
		case len(names) == 0:
		case given == 0:
			v.wrong(names[0], "%s fault needs one of %s", d.Kind.article(), list(names))
		case given > 1 && n == OneOf:
			v.wrong(names[0], "%s fault takes only one of %s", d.Kind.article(), list(names))
		}
	}
}

// article is the kind with the article that it is spoken with.
func (k Kind) article() string {
	if k != "" && (strings.ContainsRune("aei", rune(k[0])) || k == MTUShrink || k == MTTThrash || k == RNR) {
		return "an " + string(k)
	}
	return "a " + string(k)
}

// doc is what a key means to the kind.
func (d *Def) doc(u Use) string {
	if u.Doc != "" {
		return u.Doc
	}
	return keyByName[u.Key].Doc
}

func example(u Unit) string {
	switch u {
	case UnitTime:
		return ", such as 10us"
	case UnitRate:
		return ", such as 10Gbps"
	case UnitShare:
		return ", such as 1%"
	case UnitBytes:
		return ", such as 64KiB"
	case UnitFrequency:
		return ", such as 5/ms"
	}
	return ""
}

// unit judges a value by its key's unit alone.
func (v *validator) unit(d *Def, k *Key) {
	value := reflect.Indirect(k.value(v.spec))
	switch k.Unit {
	case UnitShare:
		v.share(k.Name, topo.Fraction(value.Float()))
	case UnitTime:
		if value.Int() <= 0 && k.Name != "jitter" { // whose bound is the delay
			v.wrong(k.Name, "%s fault needs a time above 0, such as 10us", d.Kind.article())
		}
	case UnitCount:
		if value.CanInt() && value.Int() < 1 {
			v.wrong(k.Name, "must be at least 1")
		}
	case UnitBytes:
		if value.Uint() == 0 {
			v.wrong(k.Name, "must be above 0")
		}
	case UnitFactor, UnitFrequency:
		if !(value.Float() > 0) {
			v.wrong(k.Name, "must be above 0")
		}
	case UnitDSCP:
		if value.Uint() > 63 {
			v.wrong(k.Name, "%d is not a DSCP from 0 to 63", value.Uint())
		}
	case UnitPriority:
		v.priorities(k.Name, v.spec.Priorities)
	}
}

func (v *validator) priorities(key string, all Priorities) {
	for i, p := range all {
		if p > 7 || slices.Contains(all[:i], p) {
			v.wrong(key, "%d is not a priority from 0 to 7, or is there already", p)
		}
	}
}

// validate is the schedule's own part: see timing.go for triggers and ramps.
func (s Schedule) validate() error {
	var errs []error
	wrong := func(key, format string, args ...any) { errs = append(errs, strict.At(key, format, args...)) }
	for _, t := range []struct {
		key string
		d   time.Duration
	}{{"at", s.At}, {"for", s.For}, {"every", s.Every}, {"jitter", s.Jitter}} {
		if t.d < 0 {
			wrong(t.key, "must not be negative")
		}
	}
	switch {
	case s.Every < 0:
	case s.Every > 0 && s.Every < shortest:
		wrong("every", "must be at least %v: no fault comes and goes faster", shortest)
	case s.Every > 0 && s.For == 0:
		wrong("for", "a fault that comes back needs to say how long it stays")
	case s.Every > 0 && s.For >= s.Every:
		wrong("every", "must be longer than for (%v), or the fault never heals in between", s.For)
	case s.Every > 0 && s.Jitter > 0 && s.Jitter >= s.Every-s.For:
		wrong("jitter", "must be shorter than every less for (%v), or a window could begin before the last one ends", s.Every-s.For)
	}
	if s.Count < 0 {
		wrong("count", "must not be negative")
	}
	if s.Count > 0 && s.Every == 0 {
		wrong("count", "needs every")
	}
	return errors.Join(append(errs, s.validateTriggers())...)
}

func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return fmt.Sprintf("%s and %s", strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
}
