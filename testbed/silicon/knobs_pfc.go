package silicon

import (
	"strconv"

	"github.com/rocebed/rocebed/datapath/asic"
	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

func markingOf(kmin, kmax topo.Bytes, pmax topo.Fraction) *dcqcn.Marking {
	return &dcqcn.Marking{Kmin: sizeOf(kmin), Kmax: sizeOf(kmax), Pmax: dcqcn.Fraction(pmax)}
}

func sizeOf(b topo.Bytes) dcqcn.Bytes { return dcqcn.Bytes(b) }
func rateOf(r topo.Rate) dcqcn.Rate   { return dcqcn.Rate(r) }

// dscpKnob gives DSCPs other priorities; what comes in with one of them is a hit.
func dscpKnob(by map[string]uint8) (knob, error) {
	to := map[uint8]uint8{}
	for text, priority := range by {
		dscp, err := strconv.ParseUint(text, 10, 6)
		if err != nil {
			return knob{}, strict.At("dscp_map."+text, "%q is not a DSCP from 0 to 63", text)
		}
		to[uint8(dscp)] = priority
	}
	return knob{port: func(p *asic.PortSettings) {
		for dscp, priority := range to {
			if p.DSCP[dscp] != priority {
				p.DSCP[dscp] = priority
				p.Watched |= 1 << dscp
			}
		}
	}, count: func(st *asic.PortStats) uint64 { return st.Watched }}, nil
}

// pfcKnob turns flow control off in some priorities, or a half of it.
func pfcKnob(half faults.Half, bits uint8) knob {
	send, obey := half != faults.HalfObey, half != faults.HalfSend
	return knob{port: func(p *asic.PortSettings) {
		if send {
			p.PFC.Send &^= bits
		}
		if obey {
			p.PFC.Ignore |= p.PFC.Obey & bits
			p.PFC.Obey &^= bits
			if p.PFC.Obey == 0 {
				p.PFC.ObeyPause = false
			}
		}
	}, count: func(st *asic.PortStats) (n uint64) {
		for i := range 8 {
			if bits&(1<<i) == 0 {
				continue
			}
			if send {
				n += st.Groups[i].HeadroomDrops
			}
			if obey {
				n += st.Against[i]
			}
		}
		return n
	}}
}

// thresholds changes when a port pauses in some priorities.
func thresholds(p *asic.PortSettings, s *faults.Spec, bits uint8) {
	for i, gi := range p.GroupOf {
		g := &p.Groups[gi]
		if bits&(1<<i) == 0 || !g.Lossless {
			continue
		}
		if s.XOFF != nil {
			g.Alpha, g.XOFF = 0, max(sizeOf(*s.XOFF), 1)
		}
		if s.Alpha != 0 {
			g.Alpha = alpha(s.Alpha)
		}
		if s.XON != nil {
			g.XONOffset = sizeOf(*s.XON)
		}
		if s.Headroom != nil {
			g.AutoHeadroom, g.Headroom = false, sizeOf(*s.Headroom)
		}
	}
}
