//go:build linux

package kernel

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rocebed/rocebed/faults"
)

// rebooting is a switch that is off for a time: all its links are down, so that what waits at its ports and what is on its cables is lost and routes go
// round it. Then it comes back by itself, or earlier where the fault heals.
type rebooting struct {
	f    *Fabric
	node string
	cuts []*cut
	down time.Duration // wall

	stop chan struct{}
	done sync.WaitGroup

	mu      sync.Mutex
	back    bool // all links are mended again
	err     error
	applied bool
}

func (in *injector) reboot(s *faults.Spec, node string) *rebooting {
	e := &rebooting{f: in.f, node: node, down: in.f.cfg.Dilation.Wall(s.Down)}
	for _, p := range in.f.Plan().Ports(node) {
		e.cuts = append(e.cuts, &cut{f: in.f, name: s.Name, ref: p.Ref})
	}
	return e
}

func (e *rebooting) possible() error {
	switch {
	case len(e.cuts) == 0:
		return fmt.Errorf("%s: it has no port", e.node)
	case e.down < leastFlap && e.f.cfg.Dilation != 0: // else it is not known yet how long that is; who measures it asks again
		return fmt.Errorf("%s: down for %v of wall time: the kernel notices nothing shorter than %v", e.node, e.down, leastFlap)
	}
	return nil
}

func (e *rebooting) each(do func(*cut) error) error {
	return each(len(e.cuts), func(i int) error { return do(e.cuts[i]) })
}

func (e *rebooting) allowed() error { return e.each((*cut).allowed) }

func (e *rebooting) apply() error {
	if err := e.possible(); err != nil {
		return err
	}
	e.stop = make(chan struct{})
	if err := e.each((*cut).apply); err != nil {
		return errors.Join(err, e.each((*cut).heal))
	}
	e.applied = true
	at := time.Now().Add(e.down)
	e.done.Go(func() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		select {
		case <-e.stop:
		case <-timer.C:
			e.boot()
		}
	})
	return nil
}

// boot mends all links.
func (e *rebooting) boot() {
	err := e.each((*cut).heal)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.back, e.err = err == nil, err
}

func (e *rebooting) isBack() (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.back, e.err
}

// verify finds the links down, or up again because it was quick.
func (e *rebooting) verify() error {
	if back, err := e.isBack(); back || err != nil {
		return err
	}
	err := e.each((*cut).verify)
	if back, _ := e.isBack(); back {
		return nil
	}
	return err
}

// hits is the one switch.
func (e *rebooting) hits() (uint64, error) {
	if e.applied {
		return 1, nil
	}
	return 0, nil
}

func (e *rebooting) heal() error {
	if e.stop != nil {
		close(e.stop)
		e.done.Wait()
		e.stop = nil
	}
	if back, _ := e.isBack(); back {
		return nil
	}
	e.boot()
	_, err := e.isBack()
	return err
}

func (e *rebooting) clean() error { return e.each((*cut).clean) }
