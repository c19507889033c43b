// Package conformance is what any verbs provider must do, as cases that run against two
// devices which reach each other: every operation over sizes around MTU boundaries and
// shapes of scatter-gather lists, flags, errors with their exact statuses, state
// transitions, shared receive queues, windows, atomics, events.
//
// Every byte of both sides' memory is checked after each step, also those that must not
// have changed. Where a device departs from the specification, its table of departures
// names the departure and its source, and the case asserts that it departs in just that
// way: a device that mends its ways fails until the table is mended too. The two ends may be
// devices of different makes: each departs in its own ways.
//
// The package knows verbs and loop only. Whoever runs it brings the devices and, for cases
// about loss, the means to lose packets.
package conformance

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// Provider is what is to be proved.
type Provider struct {
	Name string
	// Open opens host 0's or host 1's device. It may be called several times for each.
	Open func(host int) (Endpoint, error)
	// Wait lets the loops run until done is closed, or fails when that takes too long.
	Wait func(done <-chan struct{}) error
	// Lose makes the fabric lose a fraction of the packets from host 0 to host 1, until heal.
	Lose func(fraction float64) (heal func() error, err error)
}

// Endpoint is an opened device and the GID that the other one reaches it by.
type Endpoint struct {
	Device   verbs.Device
	GIDIndex int
	GID      verbs.GID
	// Departures is where the device does not do what the specification says.
	Departures []Departure
}

// T is what a case needs of a test. *testing.T and Ginkgo's GinkgoT() have it.
type T interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	Cleanup(func())
}

// Case is one behaviour.
type Case struct {
	Name string
	run  func(t T, s *Suite)
	// Timers says that the case turns on the QP's timers: it is worth running at more than one
	// dilation.
	Timers bool
	// Network says that the case turns on addresses and headers: it is worth running over IPv4
	// and over IPv6.
	Network bool
	// Reopens says that the case opens and closes host 1's device once more: it is for providers that
	// can.
	Reopens bool
}

// Run runs the case.
func (c Case) Run(t T, s *Suite) { c.run(t, s) }

// Suite is a provider with its two devices open.
type Suite struct {
	provider Provider
	ends     [2]Endpoint
	async    [2]*asyncLog
	departed map[string]bool // the declared departures that cases have come by
}

// Open opens the provider's devices.
func Open(p Provider) (*Suite, error) {
	s := &Suite{provider: p, departed: map[string]bool{}}
	for i := range s.ends {
		e, err := p.Open(i)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: host %d: %w", p.Name, i, err), s.Close())
		}
		s.ends[i] = e
		s.async[i] = newAsyncLog(s, e.Device)
	}
	return s, nil
}

// Close closes the devices.
func (s *Suite) Close() error {
	var errs []error
	for i, e := range s.ends {
		if e.Device == nil {
			continue
		}
		var err error
		werr := s.on(e.Device, func(done func()) {
			e.Device.Close(func(e error) { err = e; done() })
		})
		if err = errors.Join(err, werr); err != nil {
			errs = append(errs, fmt.Errorf("%s: host %d: %w", s.provider.Name, i, err))
		}
	}
	return errors.Join(errs...)
}

// Run runs all cases as subtests and then asks for departures that were declared and not seen.
func Run(t *testing.T, p Provider) {
	s, err := Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	whole := true
	for _, c := range Cases() {
		ran := false
		t.Run(c.Name, func(t *testing.T) { ran = true; c.Run(t, s) })
		whole = whole && ran // a -run pattern may leave cases out
	}
	if whole {
		CheckDepartures(t, s)
	}
}

// on runs start on the device's loop and waits until it calls done.
func (s *Suite) on(d verbs.Device, start func(done func())) error {
	ch := make(chan struct{})
	d.Loop().Post(func() { start(func() { close(ch) }) })
	return s.provider.Wait(ch)
}
