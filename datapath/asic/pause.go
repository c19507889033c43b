package asic

import (
	"slices"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// xoff pauses a group's priorities, if they aren't paused yet. A pause that might end at once, as the
// group holds nothing whose leaving would end it, is not begun.
func (m *memory) xoff(now loop.Time, in *port, gi uint8) {
	g := &in.groups[gi]
	if g.xoff {
		return
	}
	level := m.resumeLevel(in, gi)
	if level >= m.used {
		return
	}
	g.xoff = true
	g.xoffs++
	m.paused = append(m.paused, pausing{in, gi})
	m.resumeAt = max(m.resumeAt, level)
	in.pause(now, in.table.sends[gi])
}

// resumeLevel is how much of the shared buffer may be in use for a paused group to resume; below 0 where
// it must let go of something itself first.
func (m *memory) resumeLevel(in *port, gi uint8) int64 {
	g, gt := &in.groups[gi], &in.table.groups[gi]
	over := beyond(g.held, gt.reserved)
	switch {
	case g.head > 0:
		return -1
	case over == 0:
		return 1 << 62
	case gt.alpha == 0:
		if over+gt.xonOffset <= gt.xoff {
			return 1 << 62
		}
		return -1
	}
	// alpha·(shared − used) ≥ over + offset, in whole bytes
	need := ((over+gt.xonOffset)<<10 + int64(gt.alpha) - 1) / int64(gt.alpha)
	return m.shared - need
}

// resume ends the pauses of the groups that may.
func (s *Switch) resume(now loop.Time) {
	m := &s.memory
	m.resumeAt = -1
	m.paused = slices.DeleteFunc(m.paused, func(p pausing) bool {
		g := &p.port.groups[p.group]
		if !g.xoff {
			return true
		}
		if level := m.resumeLevel(p.port, p.group); level < m.used {
			m.resumeAt = max(m.resumeAt, level)
			return false
		}
		g.xoff = false
		p.port.unpause(now, p.port.table.sends[p.group])
		return true
	})
}

// speed is the link's, in whose bits quanta count.
func (p *port) speed() uint64 { return p.sw.config[p.index].Rate }

// pause tells the peer to keep priorities back.
func (p *port) pause(now loop.Time, priorities uint8) {
	tell := false
	for i := range uint8(8) {
		if priorities&(1<<i) != 0 {
			tell = p.pauser.XOFF(now, i) || tell
		}
	}
	if tell {
		p.sendPause(now)
	}
}

// unpause tells the peer that priorities may go again.
func (p *port) unpause(now loop.Time, priorities uint8) {
	tell := false
	for i := range uint8(8) {
		if priorities&(1<<i) != 0 {
			tell = p.pauser.XON(now, i) || tell
		}
	}
	if tell {
		p.sendPause(now)
	}
}

// sendPause sends a pause frame: after the frame that is on the line, before all others.
func (p *port) sendPause(now loop.Time) {
	f := p.sw.frames.Get()
	p.pauser.Fill(now, p.speed(), f)
	f.Dst = link.NoDst
	if p.sw.observer != nil {
		p.sw.observer.Paused(now, int(p.index), &f.PFC)
	}
	p.wire.Send(f, p.line.Send(now, f.Len))
	if at, ok := p.pauser.Refresh(); ok && !p.again.Armed() {
		p.sw.loop.Arm(&p.again, at)
	}
}

func (p *port) onRefresh() {
	now := p.sw.loop.Now()
	at, ok := p.pauser.Refresh()
	switch {
	case !ok:
	case at > now:
		p.sw.loop.Arm(&p.again, at)
	default:
		p.sendPause(now)
	}
}

// obey takes a pause frame that came in.
func (p *port) obey(now loop.Time, f *link.Frame) {
	if !p.up || !p.sw.on {
		p.sw.frames.Put(f)
		return
	}
	pfc := &f.PFC
	var read roce.PFC
	switch {
	case f.Bytes == nil:
	case f.Kind == roce.KindPFC:
		read = f.View.PFC()
		pfc = &read
	default:
		for i := range uint8(8) {
			read.Set(i, f.View.Pause())
		}
		pfc = &read
	}
	told := *pfc
	if f.Kind == roce.KindPFC {
		told.Enabled &= p.table.obey
	} else if !p.table.obeyAll {
		told.Enabled = 0
	}
	for i := range uint8(8) {
		if pfc.Enabled&(1<<i) != 0 {
			p.rxPause[i]++
		}
	}
	p.ignore(now, pfc)
	p.sw.frames.Put(f)
	if told.Enabled == 0 {
		return
	}
	p.watchBefore(now)
	p.held |= p.paused.Take(now, p.speed(), &told)
	p.watchAfter(now)
	p.serve(now)
}

// forgetPauses forgets the pauses of either direction: the link is down.
func (p *port) forgetPauses(now loop.Time) {
	var all roce.PFC
	for i := range uint8(8) {
		all.Set(i, 0)
	}
	p.paused.Take(now, p.speed(), &all)
	p.held = 0
	p.pauser.Forget(now)
	for i := range p.groups {
		p.groups[i].xoff = false
	}
}
