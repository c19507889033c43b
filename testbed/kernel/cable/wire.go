//go:build linux

package cable

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"

	"github.com/rocebed/rocebed/testbed/kernel/tc"
)

// Wire is what is declared about one direction of a cable. Times are wall times.
type Wire struct {
	// Delay is the propagation delay.
	Delay time.Duration
	// Impairments are in force together.
	Impairments []Impairment
}

// Impairment is one thing that goes wrong, by a name that is unique on its wire.
type Impairment struct {
	ID string
	// Model decides about single packets; nil for a pure delay. Seed is its source of random
	// numbers, and Stage is it loaded (Set.Load), without which it can be checked and not be
	// put on a wire.
	Model Model
	Seed  uint64
	Stage *Stage
	// Delay holds every packet that no stage lets past.
	Delay Delay
}

// Delay is an additional delay with jitter.
type Delay struct {
	Delay, Jitter time.Duration
	Distribution  string // "", "uniform", "normal", "pareto" or "paretonormal"
}

// maxDelay is what netem and the watchdog's clock certainly hold.
const maxDelay = time.Hour

// maxJitter is where netem cuts jitter off without a word (31 bits of nanoseconds).
const maxJitter = time.Duration(math.MaxInt32)

// netem is the delay line that the declaration asks for. Delays add up; of jitters there can be
// one, since the sum of two is no distribution that netem has.
func (w Wire) netem() (tc.Netem, error) {
	q := tc.Netem{Delay: w.Delay}
	jitters := ""
	overtake := ""
	for _, i := range w.Impairments {
		q.Delay += i.Delay.Delay
		if i.Delay.Jitter > 0 {
			if jitters != "" {
				return q, fmt.Errorf("%s and %s both have jitter: one cable has one jitter", jitters, i.ID)
			}
			jitters, q.Jitter, q.Distribution = i.ID, i.Delay.Jitter, i.Delay.Distribution
		}
		if _, ok := i.Model.(Overtake); ok {
			if overtake != "" {
				return q, fmt.Errorf("%s and %s both reorder: one cable has one order", overtake, i.ID)
			}
			overtake = i.ID
		}
	}
	if q.Distribution == "uniform" {
		q.Distribution = ""
	}
	if q.Delay < 0 || q.Delay > maxDelay {
		return q, fmt.Errorf("a delay of %v of wall time is not between 0 and %v", q.Delay, maxDelay)
	}
	if q.Jitter < 0 || q.Jitter > maxJitter {
		return q, fmt.Errorf("a jitter of %v of wall time is not between 0 and %v, which is as far as netem goes", q.Jitter, maxJitter)
	}
	return q, nil
}

// Check says what of the declaration can't be.
func (w Wire) Check() error {
	if _, err := w.netem(); err != nil {
		return err
	}
	stages, holds := 0, ""
	settles := false
	for k, i := range w.Impairments {
		if slices.ContainsFunc(w.Impairments[:k], func(o Impairment) bool { return o.ID == i.ID }) {
			return fmt.Errorf("%s is on this cable twice", i.ID)
		}
		if i.Model != nil {
			stages++
			if err := i.Model.check(); err != nil {
				return fmt.Errorf("%s: %w", i.ID, err)
			}
			what := settling(i.Model)
			if what != settlesNothing && !settles {
				settles = true
				stages++
			}
			if what == settlesHeld {
				if holds != "" {
					return fmt.Errorf("%s and %s both hold back single packets: one direction of a cable has one place where they wait", holds, i.ID)
				}
				holds = i.ID
			}
		}
		if stages >= bankSize {
			return fmt.Errorf("%s: one cable has at most %d things go wrong with single packets", i.ID, bankSize-1)
		}
		if d := i.Delay.Distribution; d != "" && d != "uniform" && tc.DistributionTable(d) == nil {
			return fmt.Errorf("%s: %q is no distribution (uniform, %s are)", i.ID, d, strings.Join(tc.Distributions, ", "))
		}
	}
	return nil
}

// stages are the loaded programs in the order that packets meet them: by what they do, and among
// equals as they were put in.
func (w Wire) stages() ([]*Stage, error) {
	var out []*Stage
	for _, i := range w.Impairments {
		if i.Model == nil {
			continue
		}
		if i.Stage == nil || !i.Stage.Is(i.Model, i.Seed) {
			return nil, fmt.Errorf("%s: its program is not loaded", i.ID)
		}
		out = append(out, i.Stage)
	}
	slices.SortStableFunc(out, func(a, b *Stage) int { return a.model.order() - b.model.order() })
	return out, nil
}

// programs are those of the chain: the stages', and at its end the one that copies and holds packets, where a stage asks for it.
func (w Wire) programs() (all []*ebpf.Program, err error) {
	stages, err := w.stages()
	if err != nil {
		return nil, err
	}
	var end *Stage
	for _, s := range stages {
		all = append(all, s.prog)
		if what := settling(s.model); what != settlesNothing && (end == nil || what > settling(end.model)) {
			end = s
		}
	}
	if end != nil {
		all = append(all, end.end.prog)
	}
	return all, nil
}

// settles says whether packets are copied or held at the end of the chain. All packets then take the same way there.
func (w Wire) settles() bool {
	return slices.ContainsFunc(w.Impairments, func(i Impairment) bool { return settling(i.Model) != settlesNothing })
}

// With is the declaration with one more impairment; Without, with one less.
func (w Wire) With(i Impairment) Wire {
	w.Impairments = append(slices.Clone(w.Impairments), i)
	return w
}

// Without is the declaration without the impairment of that name.
func (w Wire) Without(id string) Wire {
	w.Impairments = slices.DeleteFunc(slices.Clone(w.Impairments), func(i Impairment) bool { return i.ID == id })
	return w
}
