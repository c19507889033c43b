//go:build linux

package kernel

import (
	"errors"
	"fmt"
	"time"

	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

// lateRoutes is a switch that hears of links that go down or come up so much later. Of its own ports' carriers its kernel would know at once: it is told
// not to care. Hits are the changes of its routes that came late.
type lateRoutes struct {
	f     *Fabric
	name  string
	node  string
	delay time.Duration // wall

	final   uint64
	applied bool
	healed  bool
}

func (e *lateRoutes) possible() error { return nil }

func (e *lateRoutes) allowed() error {
	if by := e.f.routing.lateBy(e.node); by != "" {
		return fmt.Errorf("%s: fault %s has it hear late already", e.node, by)
	}
	return nil
}

func (e *lateRoutes) apply() error {
	if err := e.allowed(); err != nil {
		return err
	}
	e.applied = true
	if err := e.care(false); err != nil {
		return errors.Join(err, e.heal())
	}
	e.f.routing.delay(e.node, e.name, e.delay)
	return nil
}

// care says whether the switch stops using ports without a carrier by itself.
func (e *lateRoutes) care(on bool) error {
	keys, value := e.keys(on)
	ns := e.f.nodes[e.node].ns
	for _, k := range keys {
		if err := ns.SetSetting(k, value); err != nil {
			return err
		}
	}
	return nil
}

func (e *lateRoutes) keys(on bool) (keys []string, value string) {
	value = "0"
	if on {
		value = "1"
	}
	return linux.LinkdownKeys(e.f.Plan().Options.Family == topo.IPv6, e.f.nodes[e.node].ns.Links()...), value
}

func (e *lateRoutes) cares(on bool) error {
	keys, want := e.keys(on)
	ns := e.f.nodes[e.node].ns
	for _, k := range keys {
		if got, err := ns.Setting(k); err != nil || got != want {
			return errors.Join(err, fmt.Errorf("%s: net.%s is %s, not %s", e.node, k, got, want))
		}
	}
	return nil
}

func (e *lateRoutes) verify() error {
	if by := e.f.routing.lateBy(e.node); by != e.name {
		return fmt.Errorf("%s: it hears of links at once", e.node)
	}
	return e.cares(false)
}

func (e *lateRoutes) hits() (uint64, error) {
	if e.healed {
		return e.final, nil
	}
	return e.f.routing.lateChanges(e.node), nil
}

// heal has the switch hear at once what it has not heard of yet.
func (e *lateRoutes) heal() error {
	if e.healed || !e.applied {
		return nil
	}
	n, err := e.f.routing.hasten(e.node)
	if err != nil {
		return err
	}
	e.final = max(e.final, n)
	if err := e.care(true); err != nil {
		return err
	}
	e.healed = true
	return nil
}

func (e *lateRoutes) clean() error {
	if by := e.f.routing.lateBy(e.node); by == e.name {
		return fmt.Errorf("%s: it still hears of links late", e.node)
	}
	return e.cares(true)
}
