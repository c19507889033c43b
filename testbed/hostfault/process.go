package hostfault

import (
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/testbed/fabric"
)

// halter is the fabric's, or an error where it has none.
func (in *Injector) halter() (fabric.Halter, error) {
	if h, ok := in.cfg.Fabric.(fabric.Halter); ok {
		return h, nil
	}
	return nil, errors.New("this fabric's processes can't be stopped")
}

// process is a host's process that a fault stops or kills.
type process struct {
	in   *Injector
	host string
	kill bool
	on   bool // it has come into force, on the control loop
}

// back makes the fabric's answer come on the control loop.
func (p *process) back(done func(error)) func(error) {
	return func(err error) { p.in.cfg.Control.Post(func() { done(err) }) }
}

func (p *process) apply(done func(error)) {
	h, err := p.in.halter()
	if err != nil {
		done(err)
		return
	}
	if !p.kill {
		h.Halt(p.host, p.back(func(err error) {
			p.on = err == nil
			done(err)
		}))
		return
	}
	// The program first: what it would make of its devices' end is not for anybody to hear.
	process := func() {
		h.Kill(p.host, p.back(func(err error) {
			p.on = err == nil
			done(err)
		}))
	}
	if p.in.engine == nil {
		process()
		return
	}
	p.in.engine.Kill(p.host, func() { p.in.cfg.Control.Post(process) })
}

// state reads back how the process is.
func (p *process) state(then func(fabric.ProcessState, error)) {
	h, err := p.in.halter()
	if err != nil {
		then("", err)
		return
	}
	h.State(p.host, func(s fabric.ProcessState, err error) { p.in.cfg.Control.Post(func() { then(s, err) }) })
}

func (p *process) verify(done func(error)) {
	p.state(func(s fabric.ProcessState, err error) {
		switch {
		case err != nil:
		case !p.kill && s != fabric.ProcessStopped:
			err = fmt.Errorf("%s: its process %s", p.host, s)
		case p.kill && s == fabric.ProcessRuns: // rocebed's own: nothing of the program must be left in it
			p.empty(done)
			return
		}
		done(err)
	})
}

// empty says whether no program has anything open at the host's NICs.
func (p *process) empty(done func(error)) {
	all := gather(done)
	for _, port := range p.in.cfg.Plan.Ports(p.host) {
		b := p.in.benches[port.Ref]
		if b == nil {
			continue
		}
		p.in.on(b.loop, func() error {
			if len(b.ends) > 0 {
				return fmt.Errorf("%s: a program still has %d queue pairs there", port.Ref, len(b.ends))
			}
			return nil
		}, all.ask())
	}
	all.asked()
}

func (p *process) hits(done func(uint64, error)) {
	if p.on {
		done(1, nil)
		return
	}
	done(0, nil)
}

// heal lets a stopped process go on. Nothing brings a killed one back.
func (p *process) heal(done func(error)) {
	h, err := p.in.halter()
	if err != nil || p.kill || !p.on {
		done(nil)
		return
	}
	h.Resume(p.host, p.back(done))
}

func (p *process) clean(done func(error)) {
	if p.kill {
		done(nil)
		return
	}
	p.state(func(s fabric.ProcessState, err error) {
		if err == nil && s != fabric.ProcessRuns {
			err = fmt.Errorf("%s: its process %s", p.host, s)
		}
		done(err)
	})
}
