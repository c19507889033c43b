//go:build linux

package kernel

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel/cable"
	"github.com/rocebed/rocebed/topo"
)

// injector applies faults to the fabric. Its work runs on goroutines, one piece at a time.
type injector struct {
	f *Fabric

	mu     sync.Mutex // held while a piece of work runs
	closed bool
	active []*applied
	work   sync.WaitGroup

	stagesMu sync.Mutex
	stages   map[stageKey]*cable.Stage
	outdated []*cable.Stage

	connMu      sync.Mutex
	connections []packet.Connection // that there have been
	picking     []*impaired         // effects in force that hear of more

	turnsMu sync.Mutex
	turns   map[string]*turns // by switch

	cutsMu sync.Mutex
	cuts   map[int]string // links that a fault has down, or down at times, and the fault's name
}

// claim notes that a fault has a link down, unless another does.
func (in *injector) claim(link int, name string) error {
	in.cutsMu.Lock()
	defer in.cutsMu.Unlock()
	if by, taken := in.cuts[link]; taken {
		return fmt.Errorf("fault %s has the link down already", by)
	}
	in.cuts[link] = name
	in.f.disturbed.note()
	return nil
}

// cutBy is the fault that has a link down; empty: none.
func (in *injector) cutBy(link int) string {
	in.cutsMu.Lock()
	defer in.cutsMu.Unlock()
	return in.cuts[link]
}

func (in *injector) release(link int) {
	in.cutsMu.Lock()
	defer in.cutsMu.Unlock()
	delete(in.cuts, link)
	in.f.disturbed.note()
}

func newInjector(f *Fabric) *injector {
	return &injector{f: f, cuts: map[int]string{}, turns: map[string]*turns{}, stages: map[stageKey]*cable.Stage{}}
}

// effect is what a fault does at one place. Healing may be asked for again after an error, and
// what a healed effect has hit can still be asked.
type effect interface {
	// possible says why it can't be on this fabric at all; allowed, why it can't be now.
	possible() error
	allowed() error
	apply() error
	verify() error
	hits() (uint64, error)
	heal() error
	clean() error
}

// applied is a fault in force.
type applied struct {
	in      *injector
	name    string
	effects []effect
}

// Check refuses what this backend can't do.
func (in *injector) Check(spec faults.Spec) error {
	effects, err := in.plan(spec)
	if err != nil {
		return err
	}
	for _, e := range effects {
		if err := e.possible(); err != nil {
			return fmt.Errorf("fault %s: %w", spec.Name, err)
		}
		if err := e.allowed(); err != nil {
			return fmt.Errorf("fault %s: %w", spec.Name, err)
		}
	}
	return nil
}

// Apply starts a fault on every port that it selects, or on none.
func (in *injector) Apply(spec faults.Spec, done func(fabric.Applied, error)) {
	in.run(func() {
		a, err := in.apply(spec)
		if a == nil {
			done(nil, err)
			return
		}
		done(a, err)
	}, func(err error) { done(nil, err) })
}

func (in *injector) apply(spec faults.Spec) (*applied, error) {
	effects, err := in.plan(spec)
	if err != nil {
		return nil, err
	}
	a := &applied{in: in, name: spec.Name, effects: effects}
	if err := a.each(effect.apply); err != nil {
		err = fmt.Errorf("fault %s: apply: %w", spec.Name, err)
		if herr := a.healAll(); herr != nil {
			// What could not be undone stays the caller's to heal.
			in.active = append(in.active, a)
			return a, errors.Join(err, herr)
		}
		return nil, err
	}
	in.active = append(in.active, a)
	return a, nil
}

// each does something with every effect, a few at a time: they are about different places, and
// most of the time is spent waiting for the kernel.
func (a *applied) each(do func(effect) error) error {
	return each(len(a.effects), func(i int) error { return do(a.effects[i]) })
}

// plan turns a fault into what it does at each place.
func (in *injector) plan(spec faults.Spec) ([]effect, error) {
	if err := spec.Validate(); err != nil {
		return nil, fmt.Errorf("fault %s: %w", spec.Name, err)
	}
	if err := has(&spec); err != nil {
		return nil, fmt.Errorf("fault %s: %w", spec.Name, err)
	}
	if inSwitch(spec.Kind) {
		return in.inSwitches(&spec)
	}
	if inNIC(spec.Kind) {
		return in.inNICs(&spec)
	}
	if spec.Kind == faults.AckDelay {
		return in.atHosts(&spec)
	}
	strikes, err := faults.Resolve(&spec, in.f.Topology())
	if err != nil {
		return nil, fmt.Errorf("fault %s: %w", spec.Name, err)
	}
	var effects []effect
	for _, s := range strikes {
		switch spec.Kind {
		case faults.LinkDown:
			effects = append(effects, &cut{f: in.f, name: spec.Name, ref: s.Port})
			continue
		case faults.LinkFlap:
			effects = append(effects, in.flap(&spec, s.Port))
			continue
		}
		for _, from := range s.Senders(in.f.Plan()) {
			if spec.Kind == faults.RateLimit {
				if k := kindOf(in.f.Plan().Node(from.Node)); k == topo.SoftHost || k == topo.SoftSwitch {
					effects = append(effects, &foreignSlow{f: in.f, name: spec.Name, from: from, rate: spec.Rate})
					continue
				}
				effects = append(effects, &slow{f: in.f, name: spec.Name, from: from, rate: wallRate(spec.Rate, in.f.cfg.Dilation)})
				continue
			}
			imp, err := in.impairment(&spec, from)
			if err != nil {
				return nil, fmt.Errorf("fault %s: %w", spec.Name, err)
			}
			effects = append(effects, &impaired{f: in.f, from: from, what: imp})
		}
	}
	return effects, nil
}

// run does work on a goroutine when the work before it is done; refuse hears that there will be
// none any more.
func (in *injector) run(work func(), refuse func(error)) {
	in.mu.Lock()
	if in.closed {
		in.mu.Unlock()
		go refuse(errors.New("the fabric is closed"))
		return
	}
	in.work.Add(1)
	in.mu.Unlock()
	go func() {
		defer in.work.Done()
		in.mu.Lock()
		defer in.mu.Unlock()
		work()
	}()
}

// Verify reads the fault back from the kernel.
func (a *applied) Verify(done func(error)) {
	a.do("verify", done, effect.verify)
}

// VerifyClean checks that nothing of the fault is left.
func (a *applied) VerifyClean(done func(error)) {
	a.do("verify that it is healed", done, effect.clean)
}

func (a *applied) do(what string, done func(error), each func(effect) error) {
	a.in.run(func() {
		done(a.named(what, a.each(each)))
	}, done)
}

func (a *applied) named(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("fault %s: %s: %w", a.name, what, err)
}

// Hits is how many packets, or for a cut cable losses of carrier, the fault has caused.
func (a *applied) Hits(done func(uint64, error)) {
	a.in.run(func() {
		var sum atomic.Uint64
		err := a.each(func(e effect) error {
			n, err := e.hits()
			sum.Add(n)
			return err
		})
		done(sum.Load(), a.named("count hits", err))
	}, func(err error) { done(0, err) })
}

// Heal undoes the fault.
func (a *applied) Heal(done func(error)) {
	a.in.run(func() { done(a.named("heal", a.healAll())) }, done)
}

func (a *applied) healAll() error {
	err := a.each(effect.heal)
	if err == nil {
		a.in.active = slices.DeleteFunc(a.in.active, func(o *applied) bool { return o == a })
	}
	return err
}

// close heals what is in force, the last fault first, and refuses everything from now on.
func (in *injector) close() error {
	in.mu.Lock()
	in.closed = true
	in.mu.Unlock()
	in.work.Wait()
	in.mu.Lock()
	defer in.mu.Unlock()
	var errs []error
	for _, a := range slices.Backward(slices.Clone(in.active)) {
		errs = append(errs, a.named("heal", a.healAll()))
	}
	return errors.Join(append(errs, in.unload())...)
}
