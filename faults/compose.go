package faults

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rocebed/rocebed/topo/strict"
)

// claim is a thing of which a target has one, so that one fault at a time can set it.
type claim string

// The claims.
const (
	carrier     claim = "the link's carrier"
	line        claim = "the line's rate"
	mtuOf       claim = "the MTU"
	curve       claim = "when the queues mark"
	dscpMapOf   claim = "the map of DSCPs"
	pfcSides    claim = "whether the port pauses and is paused"
	pfcBounds   claim = "when the port pauses"
	alphaOf     claim = "the queues' share of the memory"
	memory      claim = "the memory's size"
	watchdog    claim = "the watchdog"
	hash        claim = "the hash's seed"
	service     claim = "how the queues are served"
	routing     claim = "when routes change"
	power       claim = "whether it is on"
	pauseFrames claim = "the pause frames that the NIC makes up"
	memoryPath  claim = "how fast the NIC writes to memory"
	translation claim = "the translation cache"
	receives    claim = "whether receives are posted"
	ackPolicy   claim = "when the NIC acknowledges"
	cnpPolicy   claim = "how many CNPs the NIC sends"
	dcqcnOf     claim = "DCQCN's parameters"
	source      claim = "the address that the NIC sends from"
	process     claim = "the process"
	gpus        claim = "how fast the GPUs are"
	clock       claim = "the clock"
)

// claims has the kinds that set what a target has one of. All others compose with everything, themselves too: impairments of
// packets act one after the other, traffic adds up.
var claims = map[Kind]claim{
	LinkDown: carrier, LinkFlap: carrier, RateLimit: line, MTUShrink: mtuOf,
	ECNOff: curve, ECNThresholds: curve, DSCPMap: dscpMapOf, PFCOff: pfcSides, PFCThresholds: pfcBounds, BufferAlpha: alphaOf, BufferShrink: memory,
	WatchdogOff: watchdog, HashSeed: hash, StuckQueue: service, CNPStarved: service, RouteLate: routing, Reboot: power,
	PFCStorm: pauseFrames, SlowDMA: memoryPath, PCIeDowngrade: memoryPath, MTTThrash: translation, NICReset: power, RNR: receives,
	AckDelay: ackPolicy, AckCoalesce: ackPolicy, CNPOff: cnpPolicy, CNPCap: cnpPolicy, DCQCNParams: dcqcnOf, WrongGID: source,
	ProcessPause: process, ProcessKill: process, GPUStraggler: gpus, SlowClock: clock,
}

// byPriority are the claims of which each priority has one.
var byPriority = []claim{curve, pfcSides, pfcBounds, alphaOf, service}

// Compose says why faults of two kinds can't be in force on one target at the same time; nil: they can. The order of the two doesn't matter.
func Compose(a, b Kind) error {
	if ca, ok := claims[a]; ok && ca == claims[b] {
		return fmt.Errorf("%s and %s both set %s", min(a, b), max(a, b), ca)
	}
	for _, k := range [][2]Kind{{a, b}, {b, a}} {
		if d := DefOf(k[1]); k[0] == ProcessKill && d != nil && (d.Group == GroupNIC || d.Group == GroupHost) {
			return fmt.Errorf("%s leaves no process in which %s could be healed", k[0], k[1].article())
		}
	}
	return nil
}

// composes is Compose for faults: those that set different priorities don't meet.
func composes(a, b *Spec) error {
	err := Compose(a.Kind, b.Kind)
	if err == nil || !slices.Contains(byPriority, claims[a.Kind]) || claims[a.Kind] != claims[b.Kind] {
		return err
	}
	if x, y := a.priorities(), b.priorities(); x&y == 0 {
		return nil
	}
	return err
}

// priorities are those that a fault in a switch sets.
func (s *Spec) priorities() uint8 {
	switch {
	case len(s.Priorities) > 0:
		return s.Priorities.Bits()
	case s.Kind == CNPStarved:
		return 1 << 6
	}
	return 0xff
}

// Overlaps says whether two targets have something in common: a node and its ports, a link and its directions.
func (t Target) Overlaps(o Target) bool {
	whole := func(t Target) bool { return t.Type == TargetSwitch || t.Type == TargetHost }
	link := func(t Target) bool { return t.Type == TargetDirection || t.Type == TargetLink }
	switch {
	case t.Type == TargetFabric || o.Type == TargetFabric:
		return true
	case whole(t) || whole(o):
		return t.Port.Node == o.Port.Node
	case link(t) && link(o):
		return t.Link == o.Link && t.ways()&o.wayFrom(t) != 0
	}
	return t.Port == o.Port
}

// ways has bit 0 for what leaves the target's port and bit 1 for what comes in there.
func (t Target) ways() int {
	switch {
	case t.Type == TargetLink || t.Direction == Both:
		return 3
	case t.Direction == Egress:
		return 1
	}
	return 2
}

// wayFrom is ways as seen from another target's port on the same link.
func (t Target) wayFrom(o Target) int {
	w := t.ways()
	if t.Port != o.Port {
		w = w>>1 | w<<1&2
	}
	return w
}

// Together says which faults, bound to their targets by Expand, are refused together: those that meet on a target whenever the run
// lasts long enough. What begins at an event is left to the moment when it does. Each error names the second fault's place in the list.
func Together(specs []Spec, scope Scope) map[int]error {
	out := map[int]error{}
	targets := map[int][]Target{}
	of := func(i int) []Target {
		if targets[i] == nil {
			targets[i], _ = Aim(&specs[i], scope) // that it can't be aimed is said elsewhere
		}
		return targets[i]
	}
	var order []int // of those that may be refused, by when they begin: a storm may be thousands
	for i := range specs {
		if s := &specs[i].Schedule; refusing[specs[i].Kind] && s.When == nil && s.Until == nil {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(specs[i].Schedule.At, specs[j].Schedule.At) })
	var open []int // that have begun and are not over for good
	for _, j := range order {
		b := &specs[j]
		open = slices.DeleteFunc(open, func(i int) bool {
			s := &specs[i].Schedule
			return s.Ends() && s.At+s.Lasts() <= b.Schedule.At
		})
		for _, i := range open {
			a := &specs[i]
			first, last := min(i, j), max(i, j)
			if out[last] != nil || composes(a, b) == nil || !meet(a.Schedule, b.Schedule) {
				continue
			}
			if t, ok := shared(of(first), of(last)); ok {
				out[last] = strict.At("at", "%v: fault %s is in force there at the same time, and %w", t, specs[first].Name, composes(a, b))
			}
		}
		open = append(open, j)
	}
	return out
}

// refusing are the kinds that don't compose with some kind.
var refusing = func() map[Kind]bool {
	m := map[Kind]bool{}
	for _, a := range Kinds() {
		for _, b := range Kinds() {
			m[a] = m[a] || Compose(a, b) != nil
		}
	}
	return m
}()

func shared(a, b []Target) (Target, bool) {
	for _, t := range b {
		for _, o := range a {
			if t.Overlaps(o) {
				return t, true
			}
		}
	}
	return Target{}, false
}

// meet says whether two schedules that wait for no event certainly hold at the same time at some moment.
func meet(a, b Schedule) bool {
	const most = 1000 // windows that are looked at
	i, j := 0, 0
	for range 2 * most {
		x, ok := a.Nth(i)
		y, more := b.Nth(j)
		if !ok || !more {
			return false
		}
		if certain(x, y, a.Jitter, b.Jitter) {
			return true
		}
		if x.End <= y.End {
			i++
		} else {
			j++
		}
	}
	return false
}

// certain says whether two windows share a moment, wherever jitter puts them.
func certain(x, y Window, jx, jy time.Duration) bool {
	return x.Start+jx < y.End && y.Start+jy < x.End
}
