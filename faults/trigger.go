package faults

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// TriggerKind is what kind of event a trigger waits for.
type TriggerKind string

// The kinds of triggers.
const (
	OnPacket   TriggerKind = "packet"   // the first packet of a class at a node or a port
	OnMetric   TriggerKind = "metric"   // a metric is above or below a value
	OnWorkload TriggerKind = "workload" // a workload has started, or finished
	OnFault    TriggerKind = "fault"    // another fault is in force, or healed for the last time
)

// Trigger is an event that a schedule waits for. It is written in words:
//
//	first cnp at h1                      first nak:seq at leaf1:eth0
//	metric np_cnp_sent > 100             metric if_rx_bytes{node=h1} >= 1e6
//	workload w started                   workload w finished
//	fault cut applied                    fault cut healed
//
// A metric's value is the sum over its series that have the labels. A fault that others make is healed when all of them are. Triggers are values
// that can be compared; of two that are equal, one holds when the other does.
type Trigger struct {
	On TriggerKind

	Class packet.Class // OnPacket
	At    topo.PortRef // OnPacket; without a port: anywhere at the node

	Series string // OnMetric: name{label=value,…}, as metrics.Key has it
	Op     string // OnMetric: >, >=, < or <=
	Value  float64

	Name  string // OnWorkload, OnFault
	State string // started, finished; applied, healed
}

// States of workloads and of faults.
const (
	Started  = "started"
	Finished = "finished"
	Applied  = "applied"
	Healed   = "healed"
)

var metricTrigger = regexp.MustCompile(`^([a-z_][a-z0-9_]*(?:\{[^{}]*\})?) *(>=|<=|>|<) *(\S+)$`)

// UnmarshalText reads a trigger.
func (t *Trigger) UnmarshalText(b []byte) error {
	first, rest, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	rest = strings.TrimSpace(rest)
	words := strings.Fields(rest)
	switch TriggerKind(first) {
	case "first":
		if len(words) != 3 || words[1] != "at" {
			return fmt.Errorf("%q: write \"first CLASS at NODE\" or \"first CLASS at NODE:PORT\"", b)
		}
		*t = Trigger{On: OnPacket}
		t.At.Node, t.At.Port, _ = strings.Cut(words[2], ":")
		return t.Class.UnmarshalText([]byte(words[0]))
	case OnMetric:
		m := metricTrigger.FindStringSubmatch(rest)
		if m == nil {
			return fmt.Errorf("%q: write \"metric NAME > VALUE\" or \"metric NAME{label=value} >= VALUE\"", b)
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil || v != v {
			return fmt.Errorf("%q: %q is no number", b, m[3])
		}
		*t = Trigger{On: OnMetric, Series: m[1], Op: m[2], Value: v}
		return nil
	case OnWorkload:
		return t.named(string(b), OnWorkload, words, Started, Finished)
	case OnFault:
		return t.named(string(b), OnFault, words, Applied, Healed)
	}
	return fmt.Errorf("%q is no event to wait for: it begins with first, metric, workload or fault%s", b,
		suggest(first, "first", "metric", "workload", "fault"))
}

func (t *Trigger) named(text string, on TriggerKind, words []string, states ...string) error {
	if len(words) != 2 {
		return fmt.Errorf("%q: write \"%s NAME %s\"", text, on, strings.Join(states, "|"))
	}
	*t = Trigger{On: on, Name: words[0], State: words[1]}
	if !slices.Contains(states, t.State) {
		return fmt.Errorf("%q: a %s is not %q%s", text, on, t.State, strict.DidYouMean(t.State, states))
	}
	return nil
}

func suggest(word string, of ...string) string {
	if near := strict.Nearest(word, of); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// String writes what UnmarshalText reads.
func (t Trigger) String() string {
	switch t.On {
	case OnPacket:
		at := t.At.Node
		if t.At.Port != "" {
			at = t.At.String()
		}
		return fmt.Sprintf("first %v at %s", t.Class, at)
	case OnMetric:
		return fmt.Sprintf("metric %s %s %s", t.Series, t.Op, strconv.FormatFloat(t.Value, 'g', -1, 64))
	case OnWorkload, OnFault:
		return fmt.Sprintf("%s %s %s", t.On, t.Name, t.State)
	}
	return ""
}

// MarshalText writes what UnmarshalText reads.
func (t Trigger) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Holds says whether a metric's value is what the trigger waits for.
func (t Trigger) Holds(value float64) bool {
	switch t.Op {
	case ">":
		return value > t.Value
	case ">=":
		return value >= t.Value
	case "<":
		return value < t.Value
	case "<=":
		return value <= t.Value
	}
	return false
}

// Names are what a schedule's triggers may speak of, for Refers. A nil list isn't judged.
type Names struct {
	Workloads, Faults, Metrics []string
	Topology                   *topo.Topology
}

// Refers says which of a schedule's triggers speak of what is not there, as strict.PathErrors.
func (s Schedule) Refers(n Names) error {
	var errs []error
	for _, w := range []struct {
		key string
		t   *Trigger
	}{{"when", s.When}, {"until", s.Until}} {
		if w.t != nil {
			errs = append(errs, strict.Under(w.key, w.t.refers(n)))
		}
	}
	return errors.Join(errs...)
}

func (t *Trigger) refers(n Names) error {
	missing := func(what, name string, of []string) error {
		if of == nil || slices.Contains(of, name) {
			return nil
		}
		return fmt.Errorf("there is no %s %q%s", what, name, strict.DidYouMean(name, of))
	}
	switch t.On {
	case OnWorkload:
		return missing("workload", t.Name, n.Workloads)
	case OnFault:
		return missing("fault", t.Name, n.Faults)
	case OnMetric:
		name, _, _ := strings.Cut(t.Series, "{")
		return missing("metric", name, n.Metrics)
	case OnPacket:
		if n.Topology == nil {
			return nil
		}
		var nodes, ports []string
		for i := range n.Topology.Nodes {
			node := &n.Topology.Nodes[i]
			nodes = append(nodes, node.Name)
			if node.Name == t.At.Node {
				for _, p := range node.Ports {
					ports = append(ports, p.Name)
				}
			}
		}
		if err := missing("node", t.At.Node, nodes); err != nil || t.At.Port == "" {
			return err
		}
		return missing("port at "+t.At.Node, t.At.Port, ports)
	}
	return nil
}
