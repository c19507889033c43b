package silicon

import (
	"fmt"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults"
)

// BitErrors flips each bit of a packet with a probability: one that has a flipped bit is damaged as by Corrupt.
type BitErrors struct{ Rate faults.BitErrorRate }

// TooLong drops IP packets of more than MTU bytes.
type TooLong struct{ MTU int }

// Sever drops all that the wire is given.
type Sever struct{}

// BlackHole drops what is IP, and lets the rest pass: ARP and pause frames.
type BlackHole struct{}

func (m BitErrors) model() model {
	return model{2, func(s *stage, f *link.Frame) verdict {
		return s.when(drawHit, threshold(m.Rate.Packet(int(f.Len))), damage)
	}}
}

func (m TooLong) model() model {
	return model{1, func(_ *stage, f *link.Frame) verdict {
		if f.Kind >= roce.KindIP && int(f.Len) > m.MTU+roce.EthernetLen {
			return lose
		}
		return leave
	}}
}

func (m Sever) model() model {
	return model{1, func(*stage, *link.Frame) verdict { return lose }}
}

func (m BlackHole) model() model {
	return model{1, func(_ *stage, f *link.Frame) verdict {
		if f.Kind >= roce.KindIP {
			return lose
		}
		return leave
	}}
}

// Check implements Model.
func (m BitErrors) Check() error {
	if !(m.Rate > 0 && m.Rate < 0.5) {
		return fmt.Errorf("a bit error rate of %g is not above 0 and below 0.5", float64(m.Rate))
	}
	return nil
}

// Check implements Model.
func (m TooLong) Check() error {
	if m.MTU <= 0 {
		return fmt.Errorf("an MTU of %d bytes is not above 0", m.MTU)
	}
	return nil
}

// Check implements Model.
func (m Sever) Check() error { return nil }

// Check implements Model.
func (m BlackHole) Check() error { return nil }
