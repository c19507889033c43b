package torture

import (
	"fmt"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// monitor sees what is on the wires of an RC pair, and knows what may be there.
type monitor struct {
	p    *plan
	dirs [2]direction // the requests of each host, and the answers to them
	err  error
}

// direction is one requester's traffic. Positions count PSNs from its first.
type direction struct {
	script *script
	came   []bool // by position: the request arrived whole
	have   int    // so many from the first on have
	told   int    // the answers that arrived speak for so many
	naked  map[int]bool
	until  loop.Time // an RNR NAK's delay ends
	clean  bool      // no faults in either direction
}

func (m *monitor) violated(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
}

// pos is a PSN's position among those of a direction's requests.
func (m *monitor) pos(dir int, psn roce.PSN) int { return psn.Sub(m.p.psn[dir]) }

// header is the BTH of a frame in either form.
func header(f *link.Frame) (roce.BTH, *roce.Info) {
	if f.Bytes != nil {
		return f.View.BTH(), f.View.Info()
	}
	return f.Packet.BTH, f.Packet.Info()
}

func aeth(f *link.Frame) roce.AETH {
	if f.Bytes != nil {
		return f.View.AETH()
	}
	return f.Packet.AETH
}

// sent is told of a frame that a device sends.
func (m *monitor) sent(from int, f *link.Frame, now loop.Time) {
	if m.p.kind != verbs.RC || f.Kind != roce.KindRoCE {
		return
	}
	h, info := header(f)
	if h.Opcode == roce.CNP {
		return
	}
	if info.Any(roce.Request) {
		d := &m.dirs[from]
		if d.clean && now < d.until {
			m.violated("host %d sends PSN %#x at %v; an RNR NAK forbids it until %v", from, h.PSN, now, d.until)
		}
		return
	}
	dir := 1 - from
	d := &m.dirs[dir]
	pos := m.pos(dir, h.PSN)
	speaks := pos + 1 // for so many PSNs
	if !info.Any(roce.HasAETH) {
		return
	}
	a := aeth(f)
	if k := a.Syndrome.Kind(); info.Operation == roce.OpAcknowledge && k != roce.SyndromeACK {
		speaks = pos
		if a.Syndrome == roce.NAK(roce.NAKPSNSequenceError) && m.p.profile.Recovery == rnic.GoBackN {
			if d.naked[pos] {
				m.violated("host %d sends a second NAK for PSN %#x", from, h.PSN)
			}
			d.naked[pos] = true
		}
	}
	if speaks > d.have {
		m.violated("host %d answers PSN %#x (%v, %v), but of host %d's requests it has only those before %#x",
			from, h.PSN, h.Opcode, a.Syndrome, dir, m.p.psn[dir].Add(d.have))
	}
	want := d.script.done(speaks)
	if info.Operation != roce.OpAcknowledge {
		want = d.script.of(pos) + 1
	}
	if int(a.MSN) != want {
		m.violated("host %d answers PSN %#x (%v, %v) with MSN %d, want %d", from, h.PSN, h.Opcode, a.Syndrome, a.MSN, want)
	}
}

// arrived is told of a frame before the device is.
func (m *monitor) arrived(from int, f *link.Frame, now loop.Time) {
	if m.p.kind != verbs.RC || f.Damaged || f.Kind != roce.KindRoCE {
		return
	}
	h, info := header(f)
	if h.Opcode == roce.CNP {
		return
	}
	if info.Any(roce.Request) {
		d := &m.dirs[from]
		n := 1
		if info.Operation == roce.OpRDMAReadRequest {
			n = m.packets(f)
		}
		at := m.pos(from, h.PSN)
		for i := at; i < at+n && i >= 0; i++ {
			for len(d.came) <= i {
				d.came = append(d.came, false)
			}
			d.came[i] = true
		}
		for d.have < len(d.came) && d.came[d.have] {
			d.have++
		}
		return
	}
	d := &m.dirs[1-from]
	at := m.pos(1-from, h.PSN)
	if info.Operation == roce.OpAcknowledge {
		a := aeth(f)
		switch a.Syndrome.Kind() {
		case roce.SyndromeACK:
			at++
		case roce.SyndromeRNRNAK:
			if wait := now.Add(verbs.RNRDelay[a.Syndrome.Value()]); d.clean && wait > d.until {
				d.until = wait
			}
		}
	} else {
		at++
	}
	d.told = max(d.told, at)
}

// packets is how many PSNs a READ's request stands for.
func (m *monitor) packets(f *link.Frame) int {
	n := f.Packet.RETH.DMALen
	if f.Bytes != nil {
		n = f.View.RETH().DMALen
	}
	return max(1, (int(n)+m.p.mtu-1)/m.p.mtu)
}

// completed is told of a request that succeeded.
func (m *monitor) completed(dir int, o *op, at loop.Time) {
	if m.p.kind != verbs.RC || o.psns == 0 {
		return
	}
	if d := &m.dirs[dir]; o.first+o.psns > d.told {
		m.violated("host %d completes request %d (%v, PSNs %#x to %#x) at %v; no answer to more than %#x has come",
			dir, o.id, o.kind, m.p.psn[dir].Add(o.first), m.p.psn[dir].Add(o.first+o.psns-1), at, m.p.psn[dir].Add(d.told-1))
	}
}
