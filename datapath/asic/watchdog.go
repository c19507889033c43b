package asic

import (
	"math/bits"

	"github.com/rocebed/rocebed/datapath/loop"
)

// watch is a port's storm watchdog.
type watch struct {
	timer  loop.Timer
	before uint8 // priorities that were paused when the pause frame at hand came
	storms uint8 // priorities in a storm
	// stormed are the queues that the watchdog has taken out of PFC.
	stormed uint8
	since   [8]loop.Time // when the pause began that a priority is in
}

// holding is which priorities are paused now.
func (p *port) holding(now loop.Time) (mask uint8) {
	for rest := p.held; rest != 0; rest &= rest - 1 {
		if i := uint8(bits.TrailingZeros8(rest)); p.paused.Holds(now, i) {
			mask |= 1 << i
		}
	}
	return mask
}

// watchBefore and watchAfter look at a pause frame's effect.
func (p *port) watchBefore(now loop.Time) { p.watch.before = p.holding(now) }

func (p *port) watchAfter(now loop.Time) {
	holding := p.holding(now)
	for rest := holding &^ p.watch.before; rest != 0; rest &= rest - 1 {
		p.watch.since[bits.TrailingZeros8(rest)] = now
	}
	if p.sw.settings.Watchdog.Detect > 0 && (p.watch.storms != 0 || holding != 0 && !p.watch.timer.Armed()) {
		p.onWatch()
	}
}

// onWatch declares the storms that are due and ends those that are over.
func (p *port) onWatch() {
	w, cfg, now := &p.watch, &p.sw.settings.Watchdog, p.sw.loop.Now()
	if cfg.Detect == 0 {
		return
	}
	next := never
	holding := p.holding(now)
	for i := range uint8(8) {
		bit, q := uint8(1)<<i, p.table.queueOf[i]
		switch {
		case w.storms&bit != 0:
			over := max(p.paused.Until(i), w.since[i]).Add(cfg.Restore)
			if over <= now {
				p.calm(now, i)
			} else {
				next = min(next, over)
			}
		case holding&bit != 0:
			due := w.since[i].Add(cfg.Detect)
			switch {
			case due > now:
				next = min(next, due)
			case p.waiting&(1<<q) != 0:
				p.storm(now, i)
				next = min(next, p.paused.Until(i).Add(cfg.Restore))
			default: // nobody waits: look again
				next = min(next, now.Add(cfg.Detect))
			}
		}
	}
	if next != never {
		p.sw.loop.Arm(&w.timer, next)
	}
}

// storm takes a priority's queue out of its pause.
func (p *port) storm(now loop.Time, priority uint8) {
	q := p.table.queueOf[priority]
	p.watch.storms |= 1 << priority
	p.stormsSeen[priority]++
	if p.sw.observer != nil {
		p.sw.observer.Storm(now, int(p.index), priority, true)
	}
	action := p.sw.settings.Watchdog.Action
	if action == StormAlert {
		return
	}
	p.watch.stormed |= 1 << q
	p.regate()
	if action == StormDrop {
		p.flush(1<<q, DropStorm)
	}
	p.serve(now)
}

// calm puts a priority's queue back under PFC.
func (p *port) calm(now loop.Time, priority uint8) {
	p.watch.storms &^= 1 << priority
	p.watch.stormed = 0
	for rest := p.watch.storms; rest != 0 && p.sw.settings.Watchdog.Action != StormAlert; rest &= rest - 1 {
		p.watch.stormed |= 1 << p.table.queueOf[bits.TrailingZeros8(rest)]
	}
	p.regate()
	p.stormsOver[priority]++
	if p.sw.observer != nil {
		p.sw.observer.Storm(now, int(p.index), priority, false)
	}
	p.serve(now)
}

// regate says which queues need more than a look at the line.
func (p *port) regate() { p.gates = p.table.stuck | p.table.limited | p.watch.stormed }
