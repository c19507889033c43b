package asic

import "github.com/rocebed/rocebed/datapath/loop"

// lateRoutes is when the routes follow links that went down or came up, by port; empty: at once, always so far.
type lateRoutes []lateRoute

type lateRoute struct {
	timer loop.Timer
	count uint64 // changes that came late
}

func (l lateRoutes) of(port int) uint64 {
	if port >= len(l) {
		return 0
	}
	return l[port].count
}

// reroute makes routes follow a port's link: at once, or later.
func (s *Switch) reroute(now loop.Time, p *port) {
	if delay := s.settings.RouteDelay; delay > 0 {
		if t := &s.late[p.index].timer; !t.Armed() {
			s.loop.Arm(t, now.Add(delay))
		}
		return
	}
	p.routed = p.up
	s.findLive()
}

// delayRoutes brings routes in line with a new RouteDelay.
func (s *Switch) delayRoutes() {
	if s.settings.RouteDelay > 0 {
		if s.late == nil {
			s.late = make(lateRoutes, len(s.ports))
			for i := range s.late {
				l, p := &s.late[i], &s.ports[i]
				l.timer.Fire = func() { s.converge(l, p) }
			}
		}
		return
	}
	for i := range s.late {
		l, p := &s.late[i], &s.ports[i]
		if l.timer.Armed() {
			s.loop.Disarm(&l.timer)
			s.converge(l, p)
		}
	}
}

// converge makes routes follow a port's link, late.
func (s *Switch) converge(l *lateRoute, p *port) {
	if p.routed == p.up { // it has changed back meanwhile
		return
	}
	p.routed = p.up
	l.count++
	s.findLive()
}
