// Package faults says what goes wrong: kinds, where they strike and when. It holds
// descriptions and their arithmetic only; a backend's nodes do what they say.
//
// A Spec comes in from a scenario file or a live command; Resolve turns its selector into
// the ports of a topology. The package touches no operating system.
package faults

import (
	"time"

	"github.com/rocebed/rocebed/topo"
)

// Kind is what goes wrong.
type Kind string

// The fault kinds at a switch port.
const (
	Loss      Kind = "loss"      // packets vanish: random, Gilbert-Elliott or every nth
	Delay     Kind = "delay"     // packets arrive later, with jitter of a distribution
	Reorder   Kind = "reorder"   // some packets overtake others
	Duplicate Kind = "duplicate" // packets arrive twice
	Corrupt   Kind = "corrupt"   // one bit of a packet flips; the ICRC catches it
	RateLimit Kind = "rate"      // the link carries less
	LinkDown  Kind = "down"      // the link is down
	LinkFlap  Kind = "flap"      // the link goes down and up with a period
)

// Direction is seen from the switch port: egress packets leave the switch through it.
type Direction string

// The directions. The empty direction is both.
const (
	Egress  Direction = "egress"
	Ingress Direction = "ingress"
	Both    Direction = "both"
)

// Spec is one planned fault. Fields that the kind doesn't use must be zero; Validate says so.
// Times are fabric time.
type Spec struct {
	Name      string    `yaml:"name"`
	Kind      Kind      `yaml:"kind"`
	At        []string  `yaml:"at"`        // ports: "leaf1:eth0", globs "leaf*:*", or a link "leaf1-spine2"
	Direction Direction `yaml:"direction"` // default both
	// MayMiss lets the fault hit nothing without failing the run.
	MayMiss  bool     `yaml:"may_miss"`
	Schedule Schedule `yaml:"schedule"`

	// Loss, duplicate, corrupt, reorder: the share of packets hit.
	Probability topo.Fraction `yaml:"probability"`
	// Loss: drop every nth packet (exclusive with Probability and GE).
	EveryNth int `yaml:"every_nth"`
	// Loss: the Gilbert-Elliott model's four probabilities.
	GE *GilbertElliott `yaml:"gilbert_elliott"`

	// Delay: added to every packet; packets stay in order, whatever the jitter. Reorder: how late
	// an overtaken packet is.
	Delay        time.Duration `yaml:"delay"`
	Jitter       time.Duration `yaml:"jitter"`
	Distribution string        `yaml:"distribution"` // uniform (default), normal, pareto, paretonormal
	// Reorder: every gap-th packet is sent at once, overtaking the delayed (0: by Probability alone).
	Gap int `yaml:"gap"`

	// Rate: what the link still carries, fabric rate.
	Rate topo.Rate `yaml:"rate"`

	// Flap: one period is down for Down, then up for Period − Down.
	Period time.Duration `yaml:"period"`
	Down   time.Duration `yaml:"down"`
}

// GilbertElliott is the four-parameter loss model: two states, good and bad.
// P and R are the probabilities, per packet, of going bad and of recovering; LossBad (1−h)
// and LossGood (1−k) are the losses in each state (Gilbert 1960, Elliott 1963; netem's gemodel).
type GilbertElliott struct {
	P        topo.Fraction `yaml:"p"`
	R        topo.Fraction `yaml:"r"`
	LossBad  topo.Fraction `yaml:"loss_bad"`
	LossGood topo.Fraction `yaml:"loss_good"`
}

// Schedule says when a fault is in force, in fabric time since the workloads started.
// The zero schedule is from the start to the end of the run.
type Schedule struct {
	At    time.Duration `yaml:"at"`
	For   time.Duration `yaml:"for"`   // 0: until the end of the run
	Every time.Duration `yaml:"every"` // 0: once; else the fault comes back with this period
	Count int           `yaml:"count"` // with Every: how many times; 0: until the end of the run
}
