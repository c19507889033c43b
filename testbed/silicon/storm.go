package silicon

import (
	"math"
	"time"

	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// longest is the most quanta that a frame can ask for.
const longest = math.MaxUint16

// stormOf is a PFC storm on a link of a rate. Of duty, frequency and quanta, two say what the third is; with one of them a frame asks for as much as it can, or as
// quanta says, and with quanta alone, or none, the pause never ends.
func stormOf(s *faults.Spec, rate topo.Rate) (rnic.Storm, error) {
	storm := rnic.Storm{Priorities: 1 << 3, Quanta: longest}
	if len(s.Priorities) > 0 {
		storm.Priorities = s.Priorities.Bits()
	}
	if s.Quanta != 0 {
		storm.Quanta = s.Quanta
	}
	duty := float64(s.Duty)
	ends := duty > 0 && duty < 1
	pause := func() time.Duration { return roce.QuantaTime(storm.Quanta, int64(rate)) }
	switch {
	case s.Frequency == 0 && !ends:
		return storm, nil
	case s.Frequency == 0:
		storm.Every = time.Duration(math.Round(float64(pause()) / duty))
	default:
		storm.Every = time.Duration(math.Round(float64(time.Second) / float64(s.Frequency)))
		if duty == 0 {
			break
		}
		if s.Quanta != 0 {
			return storm, strict.At("quanta", "duty and frequency say it already: give two of the three")
		}
		paused := time.Duration(math.Round(float64(storm.Every) * duty))
		if most := pause(); paused > most {
			return storm, strict.At("frequency", "a frame pauses for %v at most at %v, and %v of every %v is asked for: more frames are needed", most, rate, paused, storm.Every)
		}
		storm.Quanta = max(roce.QuantaFor(paused, int64(rate)), 1)
	}
	if frame := time.Duration(roce.LineLen(roce.MinFrameLen)) * 8 * time.Second / time.Duration(rate); storm.Every <= frame {
		return storm, strict.At("frequency", "a pause frame takes %v at %v: they can't come every %v", frame, rate, storm.Every)
	}
	return storm, nil
}
