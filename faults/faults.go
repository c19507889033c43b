// Package faults says what goes wrong: kinds, where they strike and when. It holds
// descriptions and their arithmetic only; a backend's nodes do what they say.
//
// A Spec comes in from a scenario file or a live command. Expand takes sequences, groups and
// storms apart, Aim turns selectors into targets of a topology, a Course says when the fault
// strikes and heals. Every kind is one definition in a table (Defs), from which validation
// and documentation are made. The package touches no operating system.
package faults

//go:generate go run ../testbed/gendoc ../docs/faults.md

import (
	"time"

	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/topo"
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
// Times are fabric time. Keys has each key's unit and meaning.
type Spec struct {
	Name      string    `yaml:"name"`
	Kind      Kind      `yaml:"kind"`
	At        []string  `yaml:"at"`        // selectors: see Aim
	Direction Direction `yaml:"direction"` // default both
	// OneWay is a Direction for selectors that lead somewhere: from the first node of a link to the second, along a path
	// or a flow.
	OneWay bool `yaml:"one_way"`
	// Random takes so many of the targets that At selects, drawn under the run's seed and the fault's name; 0: all.
	Random int `yaml:"random,nonzero"`
	// MayMiss lets the fault hit nothing without failing the run.
	MayMiss  bool     `yaml:"may_miss"`
	Schedule Schedule `yaml:"schedule"`

	// In place of a kind: faults that make one (see Expand). Those of a sequence strike one after the other, those
	// of a parallel group together; a storm draws faults at random.
	Sequence []Spec `yaml:"sequence"`
	Parallel []Spec `yaml:"parallel"`
	Storm    *Storm `yaml:"storm"`

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

	// Packets: what is done to which packets.
	Events []packet.Event `yaml:"events"`
	// DataPktEvents is Lumina's block, as it is.
	DataPktEvents []packet.Lumina `yaml:"data-pkt-events"`

	LinkKeys    `yaml:",inline"`
	SwitchKeys  `yaml:",inline"`
	NICKeys     `yaml:",inline"`
	HostKeys    `yaml:",inline"`
	TrafficKeys `yaml:",inline"`
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

// LinkKeys are further keys of faults on links.
type LinkKeys struct {
	Window int           `yaml:"window"` // reorder: packets that overtake one that is hit, exactly
	BER    BitErrorRate  `yaml:"ber"`    // bit-error
	MTU    topo.Bytes    `yaml:"mtu"`    // mtu: the longest IP packet that still passes
	Duty   topo.Fraction `yaml:"duty"`   // flap, pfc-storm: the share of the time
}

// SwitchKeys are the keys of faults in switches.
type SwitchKeys struct {
	Priorities Priorities       `yaml:"priorities"`
	KMin       topo.Bytes       `yaml:"kmin"`
	KMax       topo.Bytes       `yaml:"kmax"`
	PMax       topo.Fraction    `yaml:"pmax"`
	DSCPMap    map[string]uint8 `yaml:"dscp_map"` // priority by DSCP
	Half       Half             `yaml:"half"`     // pfc-off
	XOFF       *topo.Bytes      `yaml:"xoff"`
	XON        *topo.Bytes      `yaml:"xon"` // bytes below XOFF
	Headroom   *topo.Bytes      `yaml:"headroom"`
	Alpha      topo.Factor      `yaml:"alpha,nonzero"`
	Buffer     topo.Bytes       `yaml:"buffer"`
	HashSeed   *uint64          `yaml:"hash_seed"`
}

// NICKeys are the keys of faults in NICs.
type NICKeys struct {
	Frequency PerSecond       `yaml:"frequency"` // pause frames, CNPs
	Quanta    uint16          `yaml:"quanta,nonzero"`
	PCIe      topo.PCIeLink   `yaml:"pcie"`
	Entries   int             `yaml:"entries,nonzero"`
	Workload  string          `yaml:"workload"` // whose queue pairs; empty: all
	Flows     packet.Set      `yaml:"flows"`    // which of the workload's, by index; empty: all
	AckEvery  int             `yaml:"ack_every"`
	DCQCN     map[string]Knob `yaml:"dcqcn"`
	Addr      string          `yaml:"addr"`
}

// HostKeys are the keys of faults in hosts.
type HostKeys struct {
	GPUs  []int         `yaml:"gpus"`  // empty: all
	Speed topo.Fraction `yaml:"speed"` // of what is normal
}

// TrafficKeys are the keys of traffic beside the workloads. It comes from the NICs that At selects.
type TrafficKeys struct {
	To      []string   `yaml:"to"` // NICs, as At has them
	Streams int        `yaml:"streams,nonzero"`
	Size    topo.Bytes `yaml:"size"`  // payload of a packet or a message
	Bytes   topo.Bytes `yaml:"bytes"` // of a burst, from each sender
	DSCP    *uint8     `yaml:"dscp"`
}
