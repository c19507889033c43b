package fabric

import (
	"errors"
	"reflect"
	"time"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// NICSettings hold for every host NIC of a fabric. The zero value is the default.
type NICSettings struct {
	// RDMA is the RDMA subsystem's namespace mode on the kernel backend: shared (rdma_cm works;
	// costs devices × namespaces), exclusive, or auto: shared up to 8 hosts, exclusive above.
	RDMA RDMAMode `yaml:"rdma"`

	NICModel `yaml:",inline"`

	// Override holds for some hosts' NICs; a later one wins over an earlier one, key by key.
	Override []NICOverride `yaml:"override"`
}

// NICOverride is what the NICs of some hosts have instead.
type NICOverride struct {
	Node     string `yaml:"node"` // a host's name or a glob
	NICModel `yaml:",inline"`
}

// NICModel is what a software RNIC is like. Its zero value is the profile "default"; what is not given is the
// profile's.
type NICModel struct {
	Profile  string         `yaml:"profile"`
	Recovery string         `yaml:"recovery"` // go-back-n, go-back-0, selective-repeat
	DCQCN    *DCQCNSettings `yaml:"dcqcn"`
	// MaxUnacked is how many PSNs a requester may have unacknowledged.
	MaxUnacked int          `yaml:"max_unacked,nonzero"`
	Ack        *AckSettings `yaml:"ack"`
	// Priorities are DSCPs' priorities where they aren't RoCE's custom (26 is 3, 48 is 6, else DSCP/8).
	Priorities PrioritySettings `yaml:"priorities"`
	PFC        *NICPFCSettings  `yaml:"pfc"`
	// Memory is real (bytes) or phantom (what the bytes would be, checked as strictly), for scale.
	Memory MemoryMode `yaml:"memory"`
	// Process gives a host's NICs a process of its own, which can be stopped and killed without the others.
	Process bool          `yaml:"process"`
	PCIe    *PCIeSettings `yaml:"pcie"`
	// Trace is how many messages of each NIC, from the first on, leave in the record how they went through its stages.
	Trace int `yaml:"trace,nonzero"`
}

// AckSettings say when acknowledgements are asked for and sent.
type AckSettings struct {
	RequestEvery *int           `yaml:"request_every"` // packets after which a requester asks for one; 0: at a message's end alone
	Every        *int           `yaml:"every"`         // packets that ask for one which a responder answers at once
	Delay        *time.Duration `yaml:"delay"`         // how long a responder waits for more of them, at most
}

// NICPFCSettings are a NIC's flow control.
type NICPFCSettings struct {
	Priorities Priorities  `yaml:"priorities"` // that it pauses, and lets itself be paused in; default: the switches'
	XOFF       *topo.Bytes `yaml:"xoff"`
	XON        *topo.Bytes `yaml:"xon"`
	Headroom   *topo.Bytes `yaml:"headroom"`
}

// PCIeSettings are the links of a host's PCIe switch, which its NICs share.
type PCIeSettings struct {
	NIC  PCIeLink `yaml:"nic"`
	GPU  PCIeLink `yaml:"gpu"`
	Host PCIeLink `yaml:"host"`
}

// PCIeLink is a PCIe link, written "gen4 x16". The zero value is not given.
type PCIeLink = topo.PCIeLink

// MemoryMode is what memory holds.
type MemoryMode string

// The memory modes. The empty mode is real.
const (
	MemoryReal    MemoryMode = "real"
	MemoryPhantom MemoryMode = "phantom"
)

// RDMAMode is how RDMA devices relate to network namespaces.
type RDMAMode string

// The modes. The empty mode is auto.
const (
	RDMAAuto      RDMAMode = "auto"
	RDMAShared    RDMAMode = "shared"
	RDMAExclusive RDMAMode = "exclusive"
)

// Validate says what is wrong, as strict.PathErrors.
func (s *NICSettings) Validate() error {
	errs := []error{s.NICModel.validate()}
	switch s.RDMA {
	case "", RDMAAuto, RDMAShared, RDMAExclusive:
	default:
		errs = append(errs, strict.At("rdma", "%q is no mode%s", s.RDMA, strict.DidYouMean(string(s.RDMA), []string{string(RDMAAuto), string(RDMAShared), string(RDMAExclusive)})))
	}
	for i := range s.Override {
		o := &s.Override[i]
		empty := reflect.ValueOf(o.NICModel).IsZero()
		errs = append(errs, strict.Under(strictPath("override", i), errors.Join(checkOverride(o.Node, empty), o.NICModel.validate())))
	}
	return errors.Join(errs...)
}

// Of is what the NICs of a host are like.
func (s *NICSettings) Of(host string) NICModel {
	m := s.NICModel
	for i := range s.Override {
		if o := &s.Override[i]; matches(o.Node, host) {
			lay(&m, &o.NICModel)
		}
	}
	return m
}

// Section is the key of the section that gave a host's NICs something: that of the last override which
// has it, else "nics".
func (s *NICSettings) Section(host string, has func(*NICModel) bool) string {
	for i := len(s.Override) - 1; i >= 0; i-- {
		if o := &s.Override[i]; matches(o.Node, host) && has(&o.NICModel) {
			return "nics." + strictPath("override", i)
		}
	}
	return "nics"
}

// noHeadroom is what is wrong with a priority that pauses its peer and has no room for what is under way.
const noHeadroom = "without room for what is under way when a pause begins, a lossless priority loses packets (leave the key out for what it takes)"

// maxTrace keeps a record readable.
const maxTrace = 10_000

func (m *NICModel) validate() error {
	var errs []error
	wrong := func(key, format string, args ...any) { errs = append(errs, strict.At(key, format, args...)) }
	if d := m.DCQCN; d != nil {
		errs = append(errs, strict.Under("dcqcn", d.validate()))
	}
	if m.MaxUnacked < 0 {
		wrong("max_unacked", "max_unacked is %d: must be above 0 (leave the key out for the profile's)", m.MaxUnacked)
	}
	if m.Trace < 0 || m.Trace > maxTrace {
		wrong("trace", "must be from 1 to %d messages a NIC", maxTrace)
	}
	if a := m.Ack; a != nil {
		if a.RequestEvery != nil && *a.RequestEvery < 0 {
			wrong("ack.request_every", "must not be negative")
		}
		if a.Every != nil && *a.Every < 0 {
			wrong("ack.every", "must not be negative")
		}
		if a.Every != nil && *a.Every > 1 && (a.Delay == nil || *a.Delay == 0) {
			wrong("ack.every", "an acknowledgement that waits for %d packets needs an end of its wait: give ack.delay", *a.Every)
		}
	}
	errs = append(errs, strict.Under("priorities", m.Priorities.validate()))
	if p := m.PFC; p != nil {
		errs = append(errs, strict.Under("pfc.priorities", p.Priorities.validate()))
		if p.XOFF != nil && p.XON != nil && *p.XON > *p.XOFF {
			wrong("pfc.xon", "%v is above xoff %v", *p.XON, *p.XOFF)
		}
		if p.Headroom != nil && *p.Headroom == 0 {
			wrong("pfc.headroom", noHeadroom)
		}
	}
	if p := m.PCIe; p != nil {
		for _, l := range []struct {
			key  string
			link PCIeLink
		}{{"nic", p.NIC}, {"gpu", p.GPU}, {"host", p.Host}} {
			if l.link != (PCIeLink{}) {
				errs = append(errs, strict.Under("pcie."+l.key, l.link.Check()))
			}
		}
	}
	switch m.Memory {
	case "", MemoryReal, MemoryPhantom:
	default:
		wrong("memory", "%q is no kind of memory%s", m.Memory, strict.DidYouMean(string(m.Memory), []string{string(MemoryReal), string(MemoryPhantom)}))
	}
	return errors.Join(errs...)
}
