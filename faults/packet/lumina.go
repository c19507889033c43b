package packet

import (
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/topo/strict"
)

// Lumina is an event as Lumina's traffic configuration has it under data-pkt-events (SIGCOMM 2023, conf/example.yml in its
// repository): queue pair and PSN relative to the first, from 0 on; iter from 1 on.
//
// Its iteration is a round of the connection: it begins at 1 with a message, and each packet whose PSN isn't the one that is
// expected next begins another. So it is Match.Round here, and not Match.Iteration. A bit error flips bits of the IPv4
// identification, which the ICRC covers: here it is one of the transport headers.
type Lumina struct {
	QPN  uint32 `yaml:"qpn"`
	PSN  uint32 `yaml:"psn"`
	Type string `yaml:"type,required"` // drop, ecn or bit-error
	Iter uint32 `yaml:"iter"`          // default 1
}

var luminaTypes = map[string]Action{
	"drop":      {Verb: Drop},
	"ecn":       {Verb: MarkCE},
	"bit-error": {Verb: Corrupt, Part: Header},
}

// Event is the same event. Data goes forward, and in a READ in reverse, so no direction is asked for.
func (l Lumina) Event() Event {
	return Event{
		Match: Match{QP: one(l.QPN), PSN: one(l.PSN), Round: one(max(l.Iter, 1)), Class: Classes{Data}},
		Do:    Do{luminaTypes[l.Type]},
	}
}

func one(n uint32) Set { return Set{{n, n}} }

// ValidateLumina says what is wrong with Lumina's events under a key.
func ValidateLumina(key string, all []Lumina) error {
	var errs []error
	if len(all) > MaxEvents {
		return strict.At(key, "%d events are more than %d", len(all), MaxEvents)
	}
	for i, l := range all {
		at := fmt.Sprintf("%s[%d]", key, i)
		if _, ok := luminaTypes[l.Type]; !ok {
			errs = append(errs, strict.At(at+".type", "%q is no type of event%s", l.Type, strict.DidYouMean(l.Type, []string{"bit-error", "drop", "ecn"})))
		}
		if l.PSN > MaxPSN {
			errs = append(errs, strict.At(at+".psn", "%d is above %d", l.PSN, MaxPSN))
		}
		if l.Iter > MaxIteration {
			errs = append(errs, strict.At(at+".iter", "%d is above %d", l.Iter, MaxIteration))
		}
	}
	return errors.Join(errs...)
}
