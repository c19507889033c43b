package metrics

import (
	"fmt"
	"math"
	"path"
	"sort"
	"time"
)

// Phase says when in a run a reading was taken.
type Phase string

// The phases. Before and After are one reading each, with no workload running.
const (
	Before Phase = "before"
	During Phase = "during"
	After  Phase = "after"
)

// Reading is all metrics at one moment of fabric time since the workloads started.
type Reading struct {
	Phase   Phase
	At      time.Duration
	Samples []Sample
}

// Series is one metric at one set of label values, over a run.
type Series struct {
	Name   string
	Labels []string

	Before, After float64
	hasBefore     bool
	hasAfter      bool
	min, max, sum float64
	n             int
}

// Table gathers the readings of one run by series.
type Table struct {
	reg    *Registry
	series map[string]*Series
	keys   []string // sorted
	sorted bool
}

// NewTable makes an empty table of the registry's metrics.
func NewTable(reg *Registry) *Table {
	return &Table{reg: reg, series: map[string]*Series{}}
}

// Add takes a reading in.
func (t *Table) Add(r Reading) {
	for _, s := range r.Samples {
		k := t.reg.Key(s)
		e := t.series[k]
		if e == nil {
			e = &Series{Name: s.Name, Labels: s.Labels, min: math.Inf(1), max: math.Inf(-1)}
			t.series[k] = e
			t.keys = append(t.keys, k)
			t.sorted = false
		}
		switch r.Phase {
		case Before:
			e.Before, e.hasBefore = s.Value, true
		case After:
			e.After, e.hasAfter = s.Value, true
		}
		e.min, e.max = min(e.min, s.Value), max(e.max, s.Value)
		e.sum += s.Value
		e.n++
	}
}

// Select are the series of a metric whose labels match, in order of their keys. A selector
// maps label names to values or globs ("leaf*"); nil selects all.
func (t *Table) Select(name string, labels map[string]string) ([]*Series, error) {
	d, ok := t.reg.Lookup(name)
	if !ok {
		return nil, fmt.Errorf("metric %s is not registered", name)
	}
	if !t.sorted {
		sort.Strings(t.keys)
		t.sorted = true
	}
	at := map[string]int{}
	for i, l := range d.Labels {
		at[l] = i
	}
	for l := range labels {
		if _, ok := at[l]; !ok {
			return nil, fmt.Errorf("metric %s has no label %q, only %q", name, l, d.Labels)
		}
	}
	var out []*Series
	for _, k := range t.keys {
		s := t.series[k]
		if s.Name != name {
			continue
		}
		match := true
		for l, pattern := range labels {
			ok, err := path.Match(pattern, s.Labels[at[l]])
			if err != nil {
				return nil, fmt.Errorf("label %s: pattern %q: %w", l, pattern, err)
			}
			match = match && ok
		}
		if match {
			out = append(out, s)
		}
	}
	return out, nil
}

// Delta is how much the series grew from before the workloads to after them. A series that
// was first seen during the run started at 0.
func (s *Series) Delta() float64 { return s.After - s.Before }

// Complete says whether the series was read after the run.
func (s *Series) Complete() bool { return s.hasAfter }

// Min, Max and Mean are over all readings of the run, before and after included.
func (s *Series) Min() float64  { return s.min }
func (s *Series) Max() float64  { return s.max }
func (s *Series) Mean() float64 { return s.sum / float64(s.n) }

// Total is a metric's growth over the run, summed over the series that match.
func (t *Table) Total(name string, labels map[string]string) float64 {
	all, _ := t.Select(name, labels)
	sum := 0.0
	for _, s := range all {
		sum += s.Delta()
	}
	return sum
}
