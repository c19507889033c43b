package packet

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"

	"github.com/rocebed/rocebed/topo/strict"
)

// Validate says what is wrong with events under a key, as strict.PathErrors.
func Validate(key string, all []Event) error {
	if len(all) > MaxEvents {
		return strict.At(key, "%d events are more than %d", len(all), MaxEvents)
	}
	var errs []error
	for i := range all {
		errs = append(errs, strict.Under(fmt.Sprintf("%s[%d]", key, i), errors.Join(
			strict.Under("match", all[i].Match.validate()), strict.Under("do", all[i].Do.validate()))))
	}
	return errors.Join(errs...)
}

func (m *Match) validate() error {
	var errs []error
	wrong := func(key, format string, args ...any) { errs = append(errs, strict.At(key, format, args...)) }
	for _, g := range []struct{ key, pattern string }{{"workload", m.Workload}, {"from", m.From}, {"to", m.To}} {
		if _, err := path.Match(g.pattern, ""); err != nil {
			wrong(g.key, "%q is no name and no glob: %w", g.pattern, err)
		}
	}
	if m.Direction != "" && m.Direction != Forward && m.Direction != Reverse {
		wrong("direction", "%q is no direction%s", m.Direction, strict.DidYouMean(string(m.Direction), []string{string(Forward), string(Reverse)}))
	}
	for _, s := range []struct {
		key         string
		set         Set
		least, most uint32
	}{
		{"qp", m.QP, 0, math.MaxUint32}, {"psn", m.PSN, 0, MaxPSN}, {"iteration", m.Iteration, 1, MaxIteration},
		{"round", m.Round, 1, MaxIteration}, {"dscp", m.DSCP, 0, 63}, {"ordinal", m.Ordinal, 1, math.MaxUint32},
	} {
		if s.set != nil && len(s.set) == 0 {
			wrong(s.key, "there is no number in it (leave the key out for all)")
		}
		if len(s.set) > MaxRanges {
			wrong(s.key, "%d ranges are more than %d", len(s.set), MaxRanges)
		}
		for _, r := range s.set {
			if r.From < s.least || r.From > s.most || r.To > s.most && r.To != math.MaxUint32 {
				wrong(s.key, "%v is not within %v", r, Range{s.least, s.most})
			}
		}
	}
	if len(m.Ordinal.Normal()) > 1 {
		wrong("ordinal", "%v is not one range (give each an event)", m.Ordinal)
	}
	if len(m.Iteration) > 0 && len(m.Round) > 0 {
		wrong("round", "an event counts passes (iteration) or rounds: give one of them")
	}
	if m.Every < 0 {
		wrong("every", "must be at least 1")
	}
	if !(m.Probability >= 0 && m.Probability <= 1) {
		wrong("probability", "must be above 0%% and at most 100%%")
	}
	if sequenced := len(m.PSN) > 0 || len(m.Iteration) > 0 || len(m.Round) > 0; sequenced && m.Class.Mask()&^(CNP|IP) == 0 {
		wrong("class", "what has no PSN can't be told apart by it")
	}
	return errors.Join(errs...)
}

func (d Do) validate() error {
	if len(d) == 0 {
		return fmt.Errorf("nothing is done%s", strict.DidYouMean("", verbNames()))
	}
	var errs []error
	for i := range d {
		switch a := &d[i]; {
		case slices.ContainsFunc(d[:i], func(b Action) bool { return b.Verb == a.Verb }):
			errs = append(errs, fmt.Errorf("%s is there twice", a.Verb))
		case a.Time > longestDelay:
			errs = append(errs, fmt.Errorf("%v is longer than anything here may last", a.Time))
		default:
			errs = append(errs, a.check())
		}
	}
	switch {
	case d.Has(Drop) && len(d) > 1:
		errs = append(errs, errors.New("of a packet that is dropped nothing else is seen"))
	case d.Has(MarkCE) && d.Has(ClearECT):
		errs = append(errs, errors.New("the ECN field is either CE or Not-ECT"))
	case d.Has(Hold) && d.Has(Delay):
		errs = append(errs, errors.New("a packet waits for packets (hold, with a time as its end) or for a time (delay)"))
	}
	return errors.Join(errs...)
}
