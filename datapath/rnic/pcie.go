package rnic

import (
	"fmt"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// PCIeLink is what a link trained to: a generation, 1 to 6, and a width, 1, 2, 4, 8 or 16 lanes. The zero
// value is a link that costs nothing.
type PCIeLink struct{ Gen, Width int }

// laneRates are the bits a second that a lane carries after its line code: 8b/10b of 2.5 and 5 GT/s,
// 128b/130b of 8, 16 and 32 GT/s, and 236 of 256 bytes of a flit at 64 GT/s (PCI Express Base Specification 6.0, 4.2).
var laneRates = [7]uint64{1: 2_000_000_000, 2: 4_000_000_000, 3: 7_876_923_076, 4: 15_753_846_153, 5: 31_507_692_307, 6: 59_000_000_000}

// dataLinkShare is what flow control and acknowledgements leave of a link, in thousandths: 57.88 of 62.96
// Gb/s for gen3 x8 (Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM 2018, section 3).
const dataLinkShare = 919

// tlpOverhead is what a packet costs on a link besides its payload, in bytes: framing 2, data link 6, transaction header
// 16 for a write; a read's completion has 4 bytes less, which is not told apart here (same source).
const tlpOverhead = 24

// Rate is what the link carries in each direction, packet headers included, in bits a second; 0: no limit.
func (l PCIeLink) Rate() uint64 {
	if l == (PCIeLink{}) {
		return 0
	}
	return laneRates[l.Gen] * uint64(l.Width) / 1000 * dataLinkShare
}

// Validate says what is wrong.
func (l PCIeLink) Validate() error {
	if l == (PCIeLink{}) {
		return nil
	}
	if l.Gen < 1 || l.Gen > 6 {
		return fmt.Errorf("there is no PCIe generation %d, only 1 to 6", l.Gen)
	}
	switch l.Width {
	case 1, 2, 4, 8, 16:
		return nil
	}
	return fmt.Errorf("there is no PCIe link of %d lanes, only of 1, 2, 4, 8 and 16", l.Width)
}

// String writes "gen4 x16", or "unlimited".
func (l PCIeLink) String() string {
	if l == (PCIeLink{}) {
		return "unlimited"
	}
	return fmt.Sprintf("gen%d x%d", l.Gen, l.Width)
}

// PCIeConfig is a host's PCIe switch, which all its NICs share:
//
//	host memory ──Host── switch ──NIC── NIC 0
//	                        ├────GPU── GPU 0        a GPU beside each NIC: peer to peer doesn't meet the root complex
//	                        ├────NIC── NIC 1
//	                        ⋮
//
// Latencies are from a request's start to its last byte, without queueing and without the bytes' own time. Writes are
// posted: nobody waits for their latency but a completion that is written behind them (Stages.CQEWrite).
type PCIeConfig struct {
	NIC  PCIeLink // of each NIC
	GPU  PCIeLink // of the GPU beside each NIC
	Host PCIeLink // of the root complex, where all NICs' accesses to host memory meet

	MaxPayload int // bytes of a packet; 0: 256

	HostRead, GPURead time.Duration // of reading a memory
}

// Validate says what is wrong.
func (c *PCIeConfig) Validate() error {
	for _, l := range []struct {
		name string
		link PCIeLink
	}{{"NIC", c.NIC}, {"GPU", c.GPU}, {"Host", c.Host}} {
		if err := l.link.Validate(); err != nil {
			return fmt.Errorf("PCIe %s link: %w", l.name, err)
		}
	}
	switch c.MaxPayload {
	case 0, 128, 256, 512, 1024, 2048, 4096:
	default:
		return fmt.Errorf("PCIe MaxPayload is %d: give 128, 256, 512, 1024, 2048 or 4096 bytes", c.MaxPayload)
	}
	if min(c.HostRead, c.GPURead) < 0 {
		return fmt.Errorf("a PCIe latency is negative")
	}
	return nil
}

// PCIeEnd is a kind of link of the switch.
type PCIeEnd uint8

// The links.
const (
	PCIeNIC PCIeEnd = iota
	PCIeGPU
	PCIeHost
)

// PCIe is a host's switch with its links. It lives on the host's loop.
type PCIe struct {
	c     PCIeConfig
	shift uint // log2 of the payload of a packet
	host  pcieLink
	slots []*pcieSlot
	read  [2]time.Duration // latency by memory kind
}

// pcieLink is a link's two directions, away from memory and towards it for GPU and Host; towards the device
// and away from it for NIC.
type pcieLink struct {
	trained     PCIeLink
	read, write server
}

func (l *pcieLink) train(to PCIeLink) {
	l.trained = to
	l.read.setRate(to.Rate())
	l.write.setRate(to.Rate())
}

// pcieSlot is a NIC's place at the switch, and the GPU's beside it.
type pcieSlot struct {
	p        *PCIe
	nic, gpu pcieLink
	user     *pipeline
}

// NewPCIe makes a host's switch.
func NewPCIe(c PCIeConfig) (*PCIe, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.MaxPayload == 0 {
		c.MaxPayload = 256
	}
	p := &PCIe{c: c}
	for 1<<p.shift < c.MaxPayload {
		p.shift++
	}
	p.host.train(c.Host)
	p.read = [2]time.Duration{verbs.HostMemory: c.HostRead, verbs.GPUMemory: c.GPURead}
	return p, nil
}

// attach gives a NIC its place.
func (p *PCIe) attach() *pcieSlot {
	s := &pcieSlot{p: p}
	s.nic.train(p.c.NIC)
	s.gpu.train(p.c.GPU)
	p.slots = append(p.slots, s)
	return s
}

// link finds one: of the NIC that was made so many'th on this switch, or the host's.
func (p *PCIe) link(end PCIeEnd, nic int) (*pcieLink, error) {
	if end == PCIeHost {
		return &p.host, nil
	}
	if nic < 0 || nic >= len(p.slots) {
		return nil, fmt.Errorf("the PCIe switch has %d NICs, none of number %d", len(p.slots), nic)
	}
	if end == PCIeGPU {
		return &p.slots[nic].gpu, nil
	}
	return &p.slots[nic].nic, nil
}

// Retrain makes a link carry another generation or width from now on: what a bad slot or riser does. nic
// counts the devices made on this switch, from 0; it doesn't matter for PCIeHost.
func (p *PCIe) Retrain(end PCIeEnd, nic int, to PCIeLink) error {
	if err := to.Validate(); err != nil {
		return err
	}
	l, err := p.link(end, nic)
	if err != nil {
		return err
	}
	l.train(to)
	for _, s := range p.slots {
		if s.user != nil {
			s.user.plain = false // what cost nothing does now
		}
	}
	return nil
}

// Trained is what a link carries now.
func (p *PCIe) Trained(end PCIeEnd, nic int) (PCIeLink, error) {
	l, err := p.link(end, nic)
	if err != nil {
		return PCIeLink{}, err
	}
	return l.trained, nil
}

// cost is what n bytes are on a link, in bytes: their packets' headers with them.
func (p *PCIe) cost(n int) int { return n + (n+1<<p.shift-1)>>p.shift*tlpOverhead }

// transfer is when n bytes of a memory have come through the links to the NIC, without any latency.
func (s *pcieSlot) transfer(at loop.Time, n int, kind verbs.MemoryKind) loop.Time {
	n = s.p.cost(n)
	memory := &s.p.host
	if kind == verbs.GPUMemory {
		memory = &s.gpu
	}
	return max(memory.read.serve(at, n), s.nic.read.serve(at, n))
}

// readAt is when n bytes of a memory have arrived in the NIC, whose request is made at a time.
func (s *pcieSlot) readAt(at loop.Time, n int, kind verbs.MemoryKind) loop.Time {
	return s.transfer(at, n, kind).Add(s.p.read[kind&1])
}

// writeAt is when n bytes, which came at a time and may be written from another on, have left the NIC; they are in
// memory the memory's latency later. What one NIC can't write yet holds up its own writes alone.
func (s *pcieSlot) writeAt(came, from loop.Time, n int, kind verbs.MemoryKind) loop.Time {
	n = s.p.cost(n)
	memory := &s.p.host
	if kind == verbs.GPUMemory {
		memory = &s.gpu
	}
	return max(memory.write.serve(came, n), s.nic.write.serve(from, n))
}

// free says that nothing of the switch costs anything.
func (c *PCIeConfig) free() bool {
	f := *c
	f.MaxPayload = 0
	return f == PCIeConfig{}
}
