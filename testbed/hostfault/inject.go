package hostfault

import (
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
	"github.com/rocebed/rocebed/workloads"
)

// Kinds are those that this package makes.
func Kinds() []faults.Kind {
	return []faults.Kind{faults.RNR, faults.GPUStraggler, faults.NICReset, faults.ProcessPause, faults.ProcessKill}
}

// VerbsKinds are those that it makes besides where NICs don't make them: through the verbs of the programs.
func VerbsKinds() []faults.Kind { return []faults.Kind{faults.QPKill, faults.WrongGID} }

// ClockKinds are those that it makes where a host's timers are rocebed's.
func ClockKinds() []faults.Kind { return []faults.Kind{faults.SlowClock} }

// Config is what an Injector is made of.
type Config struct {
	Plan    *topo.Plan
	Seed    uint64
	NICs    fabric.NICSettings
	Fabric  fabric.Fabric // nil: only Possible will be asked
	Control loop.Loop     // where its methods are called, and its callbacks come
}

// Injector applies faults to hosts.
type Injector struct {
	cfg     Config
	benches map[topo.PortRef]*bench // by NIC; the maps themselves never change
	seats   map[string]*seat        // by host
	engine  *workloads.Engine       // nil: there is none
}

// New makes an injector for a fabric's hosts.
func New(cfg Config) *Injector {
	in := &Injector{cfg: cfg, benches: map[topo.PortRef]*bench{}, seats: map[string]*seat{}}
	if cfg.Fabric == nil {
		return in
	}
	for _, h := range cfg.Fabric.Hosts() {
		in.seats[h.Name()] = &seat{loop: h.Loop()}
		for _, n := range h.NICs() {
			in.benches[n.Port] = &bench{loop: n.Device.Loop()}
		}
	}
	return in
}

// Hook makes an engine tell the injector of what its faults are about. It is called before the engine is made.
func (in *Injector) Hook(cfg *workloads.Config) { cfg.Watch, cfg.Step = in, in.step }

// Drives tells of the engine that was made so.
func (in *Injector) Drives(e *workloads.Engine) { in.engine = e }

// effect is what a fault does at one place. All is called on the control loop, where the answers come.
type effect interface {
	apply(done func(error))
	verify(done func(error))
	hits(done func(uint64, error))
	heal(done func(error))
	clean(done func(error))
}

// Check implements fabric.Injector. That faults don't compose is faults.Together's to say.
func (in *Injector) Check(spec faults.Spec) error {
	_, err := in.plan(&spec)
	return err
}

func (in *Injector) plan(spec *faults.Spec) (all []effect, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("fault %s: %w", spec.Name, err)
		}
	}()
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	targets, err := faults.Aim(spec, faults.Scope{Topology: in.cfg.Plan.Topology, Plan: in.cfg.Plan, Seed: in.cfg.Seed})
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		e, err := in.effect(spec, t.Port)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func (in *Injector) effect(spec *faults.Spec, at topo.PortRef) (effect, error) {
	switch spec.Kind {
	case faults.RNR:
		return &unready{in: in, spec: spec, at: at, b: in.benches[at]}, nil
	case faults.QPKill, faults.NICReset:
		return in.kill(spec, at)
	case faults.ProcessPause, faults.ProcessKill:
		return &process{in: in, host: at.Node, kill: spec.Kind == faults.ProcessKill}, nil
	case faults.WrongGID:
		return in.misdirect(spec, at)
	case faults.SlowClock:
		return in.slowClock(spec, at.Node)
	case faults.GPUStraggler:
		return in.straggler(spec, at.Node)
	}
	return nil, strict.At("kind", "hosts have no fault of kind %q", spec.Kind)
}

// Apply implements fabric.Injector: the fault comes into force everywhere that it selects, or nowhere.
func (in *Injector) Apply(spec faults.Spec, done func(fabric.Applied, error)) {
	effects, err := in.plan(&spec)
	if err != nil {
		done(nil, err)
		return
	}
	a := &applied{name: spec.Name, effects: effects}
	a.each("apply", effect.apply, func(err error) {
		if err == nil {
			done(a, nil)
			return
		}
		a.Heal(func(herr error) {
			if herr != nil { // what could not be undone stays the caller's to heal
				done(a, errors.Join(err, herr))
				return
			}
			done(nil, err)
		})
	})
}

// applied is a fault in force.
type applied struct {
	name    string
	effects []effect
}

// Verify implements fabric.Applied.
func (a *applied) Verify(done func(error)) { a.each("verify", effect.verify, done) }

// Heal implements fabric.Applied.
func (a *applied) Heal(done func(error)) { a.each("heal", effect.heal, done) }

// VerifyClean implements fabric.Applied.
func (a *applied) VerifyClean(done func(error)) {
	a.each("verify that it is healed", effect.clean, done)
}

// Hits implements fabric.Applied.
func (a *applied) Hits(done func(uint64, error)) {
	var sum uint64
	a.each("count hits", func(e effect, done func(error)) {
		e.hits(func(n uint64, err error) {
			sum += n
			done(err)
		})
	}, func(err error) { done(sum, err) })
}

// each does something with every effect at once, and joins the errors in their order.
func (a *applied) each(what string, do func(effect, func(error)), done func(error)) {
	errs, left := make([]error, len(a.effects)), len(a.effects)
	for i, e := range a.effects {
		do(e, func(err error) {
			errs[i] = err
			if left--; left > 0 {
				return
			}
			if err := errors.Join(errs...); err != nil {
				done(fmt.Errorf("fault %s: %s: %w", a.name, what, err))
				return
			}
			done(nil)
		})
	}
}

// on does something on a host's loop and answers on the control loop.
func (in *Injector) on(l loop.Loop, do func() error, done func(error)) {
	l.Post(func() {
		err := do()
		in.cfg.Control.Post(func() { done(err) })
	})
}
