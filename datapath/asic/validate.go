package asic

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rocebed/rocebed/datapath/dcqcn"
)

// SettingError is a knob whose value can't be.
type SettingError struct {
	Field string // its place: "ports.3.queues.0.weight"
	Value any
	Want  string // what would do
}

func (e *SettingError) Error() string { return fmt.Sprintf("%s is %v: %s", e.Field, e.Value, e.Want) }

// SettingsError is what Apply says of settings that it refuses: all their SettingErrors, joined.
type SettingsError struct {
	Switch string
	Err    error
}

func (e *SettingsError) Error() string { return e.Switch + ": " + e.Err.Error() }

// Unwrap gives the joined errors.
func (e *SettingsError) Unwrap() error { return e.Err }

// judge collects what is wrong.
type judge struct{ errs []error }

func (j *judge) wrong(bad bool, value any, want, field string, args ...any) {
	if bad {
		j.errs = append(j.errs, &SettingError{fmt.Sprintf(field, args...), value, want})
	}
}

// Validate checks settings for a switch with these ports and returns a SettingError for each value that
// can't be, joined.
func (s *Settings) Validate(ports []PortConfig) error {
	var j judge
	s.Port.validate(&j, "port")
	for _, i := range slices.Sorted(maps.Keys(s.Ports)) {
		p := s.Ports[i]
		j.wrong(i < 0 || i >= len(ports), i, fmt.Sprintf("the ports are 0 to %d", len(ports)-1), "ports")
		p.validate(&j, fmt.Sprintf("ports.%d", i))
	}
	b := &s.Balance
	modes := []Mode{ECMP, SprayRound, SprayRandom, Adaptive, Flowlet}
	j.wrong(!slices.Contains(modes, b.Mode), fmt.Sprintf("%q", b.Mode), "give one of "+list(modes), "balance.mode")
	j.wrong(b.Mode == Flowlet && b.FlowletGap <= 0, b.FlowletGap, "give the silence after which a flow may go elsewhere, such as 50us", "balance.flowlet_gap")
	w := &s.Watchdog
	actions := []Action{StormDrop, StormForward, StormAlert}
	j.wrong(w.Detect < 0, w.Detect, "give a time, or 0 to turn the watchdog off", "watchdog.detect")
	j.wrong(w.Detect > 0 && w.Restore <= 0, w.Restore, "give the time after which a queue is restored, such as 200ms", "watchdog.restore")
	j.wrong(w.Detect > 0 && !slices.Contains(actions, w.Action), fmt.Sprintf("%q", w.Action), "give one of "+list(actions), "watchdog.action")
	j.wrong(s.RouteDelay < 0, s.RouteDelay, "give a time, or 0 for none", "route_delay")
	j.wrong(s.Sample < 0, s.Sample, "give a time, or 0 for none", "sample")
	j.wrong(s.Buffer > 1<<40, s.Buffer, "give at most 1TiB", "buffer")
	if len(j.errs) == 0 {
		aside := s.setAside(ports)
		j.wrong(int64(s.Buffer) < aside, s.Buffer, fmt.Sprintf("reserves and headroom of %d ports take %v: give more, or reserve less", len(ports), dcqcn.Bytes(aside)), "buffer")
	}
	return errors.Join(j.errs...)
}

func (p *PortSettings) validate(j *judge, at string) {
	for dscp, prio := range p.DSCP {
		j.wrong(prio > 7, prio, "priorities are 0 to 7", "%s.dscp.%d", at, dscp)
	}
	for i := range 8 {
		j.wrong(p.QueueOf[i] > 7, p.QueueOf[i], "queues are 0 to 7", "%s.queue_of.%d", at, i)
		j.wrong(p.GroupOf[i] > 7, p.GroupOf[i], "groups are 0 to 7", "%s.group_of.%d", at, i)
		q, g := &p.Queues[i], &p.Groups[i]
		j.wrong(q.Weight < 0 || q.Weight > 1<<16, q.Weight, "give 1 to 65536, or 0 for strict priority", "%s.queues.%d.weight", at, i)
		j.size(q.Reserved, "%s.queues.%d.reserved", at, i)
		j.wrong(q.Rate != 0 && q.Rate < 1000, q.Rate, "give at least 1kbps, or 0 for no limit (stuck serves a queue not at all)", "%s.queues.%d.rate", at, i)
		j.alpha(q.Alpha, "%s.queues.%d.alpha", at, i)
		j.alpha(q.LosslessAlpha, "%s.queues.%d.lossless_alpha", at, i)
		if q.ECN != nil {
			if err := q.ECN.Validate(); err != nil {
				j.errs = append(j.errs, fmt.Errorf("%s.queues.%d.ecn: %w", at, i, err))
			}
		}
		j.size(g.Reserved, "%s.groups.%d.reserved", at, i)
		j.size(g.XOFF, "%s.groups.%d.xoff", at, i)
		j.size(g.XONOffset, "%s.groups.%d.xon_offset", at, i)
		j.size(g.Headroom, "%s.groups.%d.headroom", at, i)
		j.alpha(g.Alpha, "%s.groups.%d.alpha", at, i)
		j.wrong(g.Lossless && g.Alpha == 0 && g.XOFF == 0, g.XOFF, "a lossless group needs xoff, or alpha", "%s.groups.%d.xoff", at, i)
	}
	j.wrong(p.PFC.Response < 0 || p.PFC.Response > time.Second, p.PFC.Response, "give the time that a peer may take to obey, up to 1s", "%s.pfc.response", at)
	j.size(p.Limit, "%s.limit", at)
	j.wrong(p.PFC.Ignore&p.PFC.Obey != 0, p.PFC.Ignore, "what is obeyed is not ignored", "%s.pfc.ignore", at)
	j.wrong(p.MTU < 68 || p.MTU > 65535, p.MTU, "give the largest IP packet in bytes, 68 to 65535", "%s.mtu", at)
	j.wrong(p.PFC.Quanta == 0 && p.PFC.Send != 0, p.PFC.Quanta, "a pause lasts 1 to 65535 quanta of 512 bit times", "%s.pfc.quanta", at)
}

func (j *judge) size(b dcqcn.Bytes, field string, args ...any) {
	j.wrong(b > 1<<40, b, "give at most 1TiB", field, args...)
}

func (j *judge) alpha(a Alpha, field string, args ...any) {
	j.wrong(a > maxAlpha, a, fmt.Sprintf("give at most %v", maxAlpha), field, args...)
}

// Shared is what reserves and headroom of all ports leave of the buffer.
func (s *Settings) Shared(ports []PortConfig) int64 { return int64(s.Buffer) - s.setAside(ports) }

// setAside is what reserves and headroom of all ports take of the buffer.
func (s *Settings) setAside(ports []PortConfig) (n int64) {
	for i := range ports {
		p := s.PortSettings(i)
		for k := range 8 {
			n += int64(p.Queues[k].Reserved)
			if g := &p.Groups[k]; g.Lossless {
				n += int64(g.Reserved + p.HeadroomOf(k, &ports[i]))
			}
		}
	}
	return n
}

func list[T ~string](all []T) string {
	var b strings.Builder
	for i, v := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(v))
	}
	return b.String()
}
