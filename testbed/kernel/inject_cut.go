//go:build linux

package kernel

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/topo"
)

// cut is a link that is down: its cable is cut. Both ports lose their carrier and keep their
// addresses and neighbours; no switch uses routes over it until it is mended (routing). What was
// in the ports' queues and on the cable is lost.
type cut struct {
	f    *Fabric
	name string
	ref  topo.PortRef

	before uint64 // losses of carrier at both ports
	final  uint64
	sinks  []*sink // at the ends that are hosts
	down   bool
	dark   bool // foreign ends have no carrier
	healed bool
}

// carrierDeadline is how long the kernel may take to notice a carrier.
const carrierDeadline = 5 * time.Second

func (f *Fabric) ends(ref topo.PortRef) [2]topo.PortRef {
	p, _ := f.Plan().Port(ref)
	return [2]topo.PortRef{ref, p.Peer}
}

// carrier is whether both ports of a cable have a carrier, whether neither has, and how often
// the two have lost it.
func (f *Fabric) carrier(ref topo.PortRef) (up, down bool, lost uint64, err error) {
	up, down = true, true
	for _, r := range f.ends(ref) {
		n := f.nodes[r.Node]
		if n == nil {
			return false, false, 0, fmt.Errorf("%s: no such node", r)
		}
		s, err := linkStateOf(n, r.Port)
		if err != nil {
			return false, false, 0, err
		}
		up, down = up && s.carrier && s.sends, down && !s.carrier
		lost += uint64(s.carrierLost)
	}
	return up, down, lost, nil
}

// awaitCarrier waits until both ports have their carrier, or neither.
func (f *Fabric) awaitCarrier(ref topo.PortRef, want bool) error {
	for until := time.Now().Add(carrierDeadline); ; {
		up, down, _, err := f.carrier(ref)
		if err != nil || want && up || !want && down {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("%s: the ports' carrier is not %v after %v (both have it: %v, neither: %v)", ref, want, carrierDeadline, up, down)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func (e *cut) possible() error { return nil }

// allowed refuses a link that another fault has down, or down at times.
func (e *cut) allowed() error {
	if by := e.f.inject.cutBy(e.cable()); by != "" {
		return fmt.Errorf("%s: fault %s has the link down already", e.ref, by)
	}
	return nil
}

func (e *cut) apply() error {
	up, _, lost, err := e.f.carrier(e.ref)
	if err != nil {
		return err
	}
	// A flapping link may be up at the moment, and is another fault's all the same.
	if err := e.f.inject.claim(e.cable(), e.name); err != nil {
		return fmt.Errorf("%s: %w", e.ref, err)
	}
	if !up {
		e.f.inject.release(e.cable())
		return fmt.Errorf("%s: the link is down already", e.ref)
	}
	e.before, e.down = lost, true
	err = e.laySinks()
	if err == nil {
		err = e.set(false)
	}
	if err != nil {
		return errors.Join(err, e.heal())
	}
	return nil
}

// laySinks puts a sink on each end that is a host.
func (e *cut) laySinks() error {
	for _, r := range e.f.ends(e.ref) {
		if n := e.f.nodes[r.Node]; n.kind == topo.RxeHost {
			s, err := newSink(n, r.Port)
			if err != nil {
				return err
			}
			e.sinks = append(e.sinks, s)
		}
	}
	return nil
}

// set cuts or mends the cable and lets the switches know. Hosts' sinks are open whenever their
// ports can't send.
func (e *cut) set(up bool) error {
	if !up {
		if err := e.openSinks(true); err != nil {
			return err
		}
	}
	if !up {
		if err := e.tellForeign(false); err != nil {
			return err
		}
	}
	if err := e.f.wiring.SetCable(e.ref, up); err != nil {
		return err
	}
	if err := e.f.routing.set(e.cable(), !up); err != nil {
		return err
	}
	if e.f.cfg.Foreign != nil {
		if err := e.f.cfg.Foreign.SetLink(e.cable(), up); err != nil {
			return err
		}
	}
	if !up {
		return nil
	}
	if err := e.f.awaitCarrier(e.ref, true); err != nil {
		return err
	}
	return errors.Join(e.openSinks(false), e.tellForeign(true))
}

// tellForeign tells foreign ends about their carrier: before it goes, so that they send nothing that the kernel would refuse,
// and after it has come.
func (e *cut) tellForeign(up bool) error {
	if e.dark == !up {
		return nil // after an error half-way
	}
	for _, r := range e.f.foreignEnds(e.ref) {
		if err := e.f.cfg.Foreign.SetCarrier(r, up); err != nil {
			return err
		}
	}
	e.dark = !up
	return nil
}

func (e *cut) openSinks(open bool) error {
	for _, s := range e.sinks {
		if err := s.open(open); err != nil {
			return err
		}
	}
	if !open || len(e.sinks) == 0 {
		return nil
	}
	return passed()
}

// cable is the number of the link in the topology.
func (e *cut) cable() int {
	p, _ := e.f.Plan().Port(e.ref)
	return p.Link
}

func (e *cut) verify() error { return e.f.awaitCarrier(e.ref, false) }

// hits are the losses of carrier that the two ports saw.
func (e *cut) hits() (uint64, error) {
	if e.healed {
		return e.final, nil
	}
	_, _, lost, err := e.f.carrier(e.ref)
	return lost - e.before, err
}

func (e *cut) heal() error {
	if e.healed || !e.down {
		return nil
	}
	n, err := e.hits()
	if err != nil {
		return err
	}
	if err := e.set(true); err != nil {
		return err
	}
	for len(e.sinks) > 0 {
		if err := e.sinks[0].remove(); err != nil {
			return err
		}
		e.sinks = e.sinks[1:]
	}
	e.f.inject.release(e.cable())
	e.final, e.healed = n, true
	return nil
}

// clean checks the carrier and all that could have suffered: both trees and both directions.
func (e *cut) clean() error {
	up, _, _, err := e.f.carrier(e.ref)
	if err == nil && !up {
		err = fmt.Errorf("%s: a port has no carrier", e.ref)
	}
	errs := []error{err}
	for _, r := range e.f.ends(e.ref) {
		if n := e.f.nodes[r.Node]; !n.foreign() {
			errs = append(errs, n.ports.verify(r.Port))
		}
		errs = append(errs, e.f.cables.Verify(r))
	}
	return errors.Join(errs...)
}

// leastFlap is how short a link may be down or up, in wall time, for the kernel to notice.
const leastFlap = 5 * time.Millisecond

// flapping is a link that goes down and comes up again with a period.
type flapping struct {
	cut
	period, downFor time.Duration // wall
	varies          bool          // its times vary about these, exponentially
	seed            uint64

	stop chan struct{}
	done sync.WaitGroup
	mu   sync.Mutex
	err  error
}

func (in *injector) flap(s *faults.Spec, ref topo.PortRef) *flapping {
	wall := in.f.cfg.Dilation.Wall
	return &flapping{
		cut:    cut{f: in.f, name: s.Name, ref: ref},
		period: wall(s.Period), downFor: wall(s.DownTime()),
		varies: s.Distribution == faults.Exponential, seed: faults.Seed(in.f.cfg.Seed, s.Name, ref.String()),
	}
}

func (e *flapping) possible() error {
	if e.f.cfg.Dilation == 0 {
		return nil // it is not known yet how long they are; who measures it asks again
	}
	if e.downFor < leastFlap || e.period-e.downFor < leastFlap {
		return fmt.Errorf("%s: down for %v and up for %v of wall time: the kernel notices nothing shorter than %v", e.ref, e.downFor, e.period-e.downFor, leastFlap)
	}
	return nil
}

func (e *flapping) apply() error {
	if err := e.possible(); err != nil {
		return err
	}
	if err := e.cut.apply(); err != nil {
		return err
	}
	e.stop = make(chan struct{})
	start := time.Now()
	e.done.Go(func() {
		for n, at := uint64(0), start; ; n++ {
			at = at.Add(e.lasts(n))
			if e.until(at) || e.failed(e.set(n%2 == 0)) {
				return
			}
		}
	})
	return nil
}

// lasts is how long the link stays as it is after n changes, the first of which took it down.
func (e *flapping) lasts(n uint64) time.Duration {
	mean := e.downFor
	if n%2 == 1 {
		mean = e.period - e.downFor
	}
	if !e.varies {
		return mean
	}
	const purpose = 3 // drawJitter of software nodes: the same seed has the same times there
	u := (float64(faults.Draw(e.seed, purpose, n)>>11) + 0.5) / (1 << 53)
	return max(time.Duration(math.Round(-math.Log(u)*float64(mean))), leastFlap)
}

// until waits and says whether the flapping ends.
func (e *flapping) until(t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-e.stop:
		return true
	case <-timer.C:
		return false
	}
}

// failed keeps the error of the last change and says whether there is one.
func (e *flapping) failed(err error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = err
	return err != nil
}

func (e *flapping) failure() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// verify waits for the first loss of carrier, since the link may be up again by now.
func (e *flapping) verify() error {
	for until := time.Now().Add(carrierDeadline); ; {
		n, err := e.hits()
		if err = errors.Join(err, e.failure()); err != nil || n > 0 {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("%s: no port has lost its carrier in %v", e.ref, carrierDeadline)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func (e *flapping) heal() error {
	if e.stop != nil {
		close(e.stop)
		e.done.Wait()
		e.stop = nil
		if err := e.failure(); err != nil {
			e.f.cfg.Log.Warn("flapping had stopped by itself", "port", e.ref, "error", err)
		}
	}
	return e.cut.heal()
}
