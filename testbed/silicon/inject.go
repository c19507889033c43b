package silicon

import (
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

// Injector applies faults to ports and their wires. What it keeps lives on its control loop, where its methods
// are called and its callbacks come; what it does at a port it does on the port's loop.
type Injector struct {
	plan     *topo.Plan
	settings fabric.Settings
	seed     uint64
	pace     loop.Dilation
	ctl      loop.Loop
	port     func(topo.PortRef) *Port
	routing  *Routing

	cuts        map[int]string      // links that a fault has down, or down at times, and the fault's name
	connections []packet.Connection // that there have been
	picking     []*picked           // effects in force that hear of more
	slowed      map[int]string      // ports, by number, whose rate a fault limits
	off         map[string]string   // switches that are rebooting, and the fault's name
}

// NewInjector makes an injector for the ports that port finds, in a fabric of a plan, settings and a seed. routing hears of links that are down.
func NewInjector(cfg Config, ctl loop.Loop, port func(topo.PortRef) *Port, routing *Routing) *Injector {
	return &Injector{plan: cfg.Plan, settings: cfg.Settings, seed: cfg.Seed, pace: cfg.Pace, ctl: ctl, port: port, routing: routing, cuts: map[int]string{}, slowed: map[int]string{}, off: map[string]string{}}
}

// effect is what a fault does at one place: a direction of a link, or a link. Its methods with a port run on that port's loop,
// the others on the control loop.
type effect interface {
	// possible says why it can't be on this fabric at all, allowed why it can't be now; claim takes what only one fault
	// may have, and release gives it back.
	possible() error
	allowed() error
	claim()
	release()
	ports() []*Port
	apply(*Port) error
	verify(*Port) error
	hits(*Port) uint64
	heal(*Port)
	clean(*Port) error
}

// Check implements fabric.Injector.
func (in *Injector) Check(spec faults.Spec) error {
	effects, err := in.plans(spec)
	if err != nil {
		return err
	}
	for _, e := range effects {
		if err := errors.Join(e.possible(), e.allowed()); err != nil {
			return named(spec.Name, "", err)
		}
	}
	return nil
}

// Possible is Check before there is a fabric: what depends on other faults in force is not judged.
func (in *Injector) Possible(spec faults.Spec) error {
	effects, err := in.plans(spec)
	if err != nil {
		return err
	}
	for _, e := range effects {
		if err := e.possible(); err != nil {
			return named(spec.Name, "", err)
		}
	}
	return nil
}

// Apply implements fabric.Injector: the fault comes into force on every port that it selects, or on none.
func (in *Injector) Apply(spec faults.Spec, done func(fabric.Applied, error)) {
	if err := in.Check(spec); err != nil {
		done(nil, err)
		return
	}
	effects, err := in.plans(spec)
	if err != nil {
		done(nil, err)
		return
	}
	a := &applied{in: in, name: spec.Name, effects: effects, sound: map[int]bool{}}
	for _, e := range effects {
		e.claim()
	}
	a.take(applying, func(_ uint64, err error) {
		if err == nil {
			done(a, nil)
			return
		}
		a.Heal(func(herr error) {
			if herr != nil { // what could not be undone stays the caller's to heal
				done(a, errors.Join(named(a.name, "apply", err), herr))
				return
			}
			done(nil, named(a.name, "apply", err))
		})
	})
}

// plans turns a fault into what it does at each place.
func (in *Injector) plans(spec faults.Spec) ([]effect, error) {
	if err := spec.Validate(); err != nil {
		return nil, named(spec.Name, "", err)
	}
	if err := has(&spec); err != nil {
		return nil, named(spec.Name, "", err)
	}
	if d := faults.DefOf(spec.Kind); d.Target == faults.TargetPort || d.Target == faults.TargetSwitch {
		return in.inSwitches(&spec)
	}
	if faults.DefOf(spec.Kind).Target == faults.TargetNIC {
		return in.inNICs(&spec)
	}
	strikes, err := faults.Resolve(&spec, in.plan.Topology)
	if err != nil {
		return nil, named(spec.Name, "", err)
	}
	var out []effect
	cuts := map[int]bool{} // a link has one carrier, whichever directions are struck
	for _, s := range strikes {
		p, _ := in.plan.Port(s.Port)
		switch spec.Kind {
		case faults.LinkDown, faults.LinkFlap:
			if cuts[p.Link] {
				continue
			}
			cuts[p.Link] = true
			out = append(out, &cut{in: in, name: spec.Name, link: p.Link, ends: [2]*Port{in.port(s.Port), in.port(p.Peer)},
				ref: s.Port, period: spec.Period, downFor: spec.DownTime(), varies: spec.Distribution == faults.Exponential, seed: faults.Seed(in.seed, spec.Name, s.Port.String())})
			continue
		}
		for _, from := range s.Senders(in.plan) {
			if spec.Kind == faults.Packets {
				e, err := in.picked(&spec, from)
				if err != nil {
					return nil, named(spec.Name, "", err)
				}
				out = append(out, e)
				continue
			}
			if spec.Kind == faults.RateLimit {
				out = append(out, &slow{in: in, name: spec.Name, ref: from, port: in.port(from), rate: spec.Rate})
				continue
			}
			imp, err := in.impairment(&spec, from)
			if err != nil {
				return nil, named(spec.Name, "", err)
			}
			out = append(out, &impaired{ref: from, port: in.port(from), what: imp})
		}
	}
	return out, nil
}

// inSwitches is plans for faults in switches.
func (in *Injector) inSwitches(spec *faults.Spec) (out []effect, err error) {
	targets, err := faults.Aim(spec, faults.Scope{Topology: in.plan.Topology, Plan: in.plan, Seed: in.seed})
	if err != nil {
		return nil, named(spec.Name, "", err)
	}
	for _, t := range targets {
		if spec.Kind == faults.Reboot {
			out = append(out, in.reboot(spec, t.Port.Node))
			continue
		}
		e, err := in.setting(spec, t.Port)
		if err != nil {
			return nil, named(spec.Name, "", err)
		}
		out = append(out, e)
	}
	return out, nil
}

// step is a step of a fault's life, at one place.
type step struct {
	name string
	do   func(effect, *Port) (hits uint64, err error)
}

var (
	applying  = step{"apply", func(e effect, p *Port) (uint64, error) { return 0, e.apply(p) }}
	verifying = step{"verify", func(e effect, p *Port) (uint64, error) { return 0, e.verify(p) }}
	counting  = step{"count hits of", func(e effect, p *Port) (uint64, error) { return e.hits(p), nil }}
	// What healing counts is what was hit up to the moment in which the fault ended.
	healing = step{"heal", func(e effect, p *Port) (uint64, error) {
		n := e.hits(p)
		e.heal(p)
		return n, nil
	}}
	cleaning = step{"verify that it is healed", func(e effect, p *Port) (uint64, error) { return 0, e.clean(p) }}

	steps = []step{applying, verifying, counting, healing, cleaning}
)

// applied is a fault in force.
type applied struct {
	in      *Injector
	name    string
	effects []effect
	sound   map[int]bool // effects that have healed
	healed  bool
	final   uint64 // hits when it was healed
}

// Verify implements fabric.Applied: what is in force is read back from the wires and the devices.
func (a *applied) Verify(done func(error)) { a.each(verifying, done) }

// VerifyClean implements fabric.Applied.
func (a *applied) VerifyClean(done func(error)) { a.each(cleaning, done) }

// each takes a step everywhere.
func (a *applied) each(s step, done func(error)) {
	a.take(s, func(_ uint64, err error) { done(named(a.name, s.name, err)) })
}

// Hits implements fabric.Applied.
func (a *applied) Hits(done func(uint64, error)) {
	if a.healed {
		done(a.final, nil)
		return
	}
	a.take(counting, func(n uint64, err error) { done(a.final+n, named(a.name, counting.name, err)) })
}

// Heal implements fabric.Applied. Only what is in another process may fail to heal, and is asked again then.
func (a *applied) Heal(done func(error)) {
	if a.healed {
		done(nil)
		return
	}
	a.take(healing, func(n uint64, err error) {
		a.final += n
		if err != nil {
			done(named(a.name, healing.name, err))
			return
		}
		for _, e := range a.effects {
			e.release()
		}
		a.healed = true
		done(nil)
	})
}

// take takes a step at every port of every effect, on that port's loop, sums what they say they have hit, and joins the errors in that
// order. done is called on the control loop. What has healed is not asked again, but for whether it is clean.
func (a *applied) take(s step, done func(hits uint64, err error)) {
	type place struct {
		effect int
		port   *Port
	}
	var places []place
	for i, e := range a.effects {
		if a.sound[i] && s.name != cleaning.name {
			continue
		}
		for _, p := range e.ports() {
			places = append(places, place{i, p})
		}
	}
	left, sum, errs := len(places), uint64(0), make([]error, len(places))
	if left == 0 {
		done(0, nil)
		return
	}
	for k, at := range places {
		e := a.effects[at.effect]
		back := func(n uint64, err error) {
			a.in.ctl.Post(func() {
				sum += n
				errs[k] = err
				if s.name == healing.name && err == nil {
					a.sound[at.effect] = true
				}
				if left--; left == 0 {
					done(sum, errors.Join(errs...))
				}
			})
		}
		if far, ok := e.(afar); ok {
			far.ask(s, back)
			continue
		}
		at.port.Loop.Post(func() { back(s.do(e, at.port)) })
	}
}

func named(fault, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case what == "":
		return fmt.Errorf("fault %s: %w", fault, err)
	}
	return fmt.Errorf("fault %s: %s: %w", fault, what, err)
}
