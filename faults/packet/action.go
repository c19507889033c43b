package packet

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rocebed/rocebed/topo/strict"
)

// Verbs are all of them, in the order of the documentation.
func Verbs() []Verb {
	return []Verb{Drop, Corrupt, MarkCE, ClearECT, SetDSCP, Duplicate, Delay, Hold, Truncate}
}

func verbNames() (names []string) {
	for _, v := range Verbs() {
		names = append(names, string(v))
	}
	return names
}

// UnmarshalText reads "drop", "corrupt icrc", "delay 20us", "hold 3 1ms" and the like.
func (a *Action) UnmarshalText(b []byte) error {
	words := strings.Fields(string(b))
	if len(words) == 0 {
		return fmt.Errorf("nothing is done%s", strict.DidYouMean("", verbNames()))
	}
	*a = Action{Verb: Verb(words[0])}
	if !slices.Contains(Verbs(), a.Verb) {
		return fmt.Errorf("%q is nothing that can be done to a packet%s", words[0], strict.DidYouMean(words[0], verbNames()))
	}
	if err := a.take(words[1:]); err != nil {
		return fmt.Errorf("%q: %w", b, err)
	}
	return nil
}

// take reads what comes behind the verb.
func (a *Action) take(args []string) (err error) {
	most := 1
	switch a.Verb {
	case Drop, MarkCE, ClearECT:
		most = 0
	case Hold:
		most = 2
	}
	if len(args) > most {
		return fmt.Errorf("%s takes no %q", a.Verb, args[most])
	}
	switch a.Verb {
	case Corrupt:
		a.Part = Payload
		if len(args) > 0 {
			a.Part = Part(args[0])
		}
	case SetDSCP, Hold, Truncate:
		if len(args) == 0 {
			return fmt.Errorf("%s needs a number", a.Verb)
		}
		a.N, err = number(args[0])
	case Duplicate:
		a.N = 1
		if len(args) > 0 {
			a.N, err = number(args[0])
		}
	case Delay:
		if len(args) == 0 {
			return errors.New("delay needs a time, such as 20us")
		}
		a.Time, err = strict.ParseDuration(args[0])
	}
	if a.Verb == Hold && len(args) == 2 && err == nil {
		a.Time, err = strict.ParseDuration(args[1])
		if err == nil && a.Time == 0 {
			err = errors.New("a packet that is held for no time isn't held")
		}
	}
	if err != nil {
		return err
	}
	return a.check()
}

func number(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is no whole number", s)
	}
	return int(n), nil
}

// check says what of an action can't be.
func (a *Action) check() error {
	in := func(least, most int, what string) error {
		if a.N < least || a.N > most {
			return fmt.Errorf("%d is no %s from %d to %d", a.N, what, least, most)
		}
		return nil
	}
	switch a.Verb {
	case Drop, MarkCE, ClearECT:
		return nil
	case Corrupt:
		if parts := []string{string(Payload), string(Header), string(ICRC)}; !slices.Contains(parts, string(a.Part)) {
			return fmt.Errorf("%q is no part that can be damaged%s", a.Part, strict.DidYouMean(string(a.Part), parts))
		}
		return nil
	case SetDSCP:
		return in(0, 63, "DSCP")
	case Duplicate:
		return in(1, MaxCopies, "number of copies")
	case Delay:
		if a.Time <= 0 {
			return errors.New("a delay must be above 0")
		}
		return nil
	case Hold:
		if a.Time < 0 {
			return errors.New("a time can't be negative")
		}
		return in(1, MaxHold, "number of packets")
	case Truncate:
		return in(MinTruncate, 65535, "length")
	}
	return fmt.Errorf("%q is nothing that can be done to a packet%s", a.Verb, strict.DidYouMean(string(a.Verb), verbNames()))
}

// String writes what UnmarshalText reads.
func (a Action) String() string {
	s := string(a.Verb)
	switch a.Verb {
	case Corrupt:
		s += " " + string(a.Part)
	case SetDSCP, Truncate, Duplicate, Hold:
		s += " " + strconv.Itoa(a.N)
	}
	if a.Time > 0 {
		s += " " + a.Time.String()
	}
	return s
}

// MarshalText writes what UnmarshalText reads.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads one action.
func (d *Do) UnmarshalText(b []byte) error {
	var a Action
	err := a.UnmarshalText(b)
	*d = Do{a}
	return err
}

// Has says whether a verb is among the actions.
func (d Do) Has(v Verb) bool {
	return slices.ContainsFunc(d, func(a Action) bool { return a.Verb == v })
}

// longestDelay is what fits an action's time, with room for sums.
const longestDelay = 1000 * time.Hour
