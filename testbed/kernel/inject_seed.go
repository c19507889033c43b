//go:build linux

package kernel

import (
	"fmt"

	"github.com/rocebed/rocebed/testbed/linux"
)

// seeded is a switch whose ECMP hash has another seed. Hits are the packets that its ports have sent meanwhile.
type seeded struct {
	f         *Fabric
	node      string
	was, seed string

	before  uint64
	final   uint64
	applied bool
	healed  bool
}

func (e *seeded) ns() *linux.Namespace { return e.f.nodes[e.node].ns }

func (e *seeded) possible() error {
	if e.was == e.seed {
		return fmt.Errorf("%s: it would change nothing: %s is its seed already", e.node, e.seed)
	}
	return nil
}

func (e *seeded) allowed() error {
	if err := e.has(e.was); err != nil {
		return fmt.Errorf("another fault has changed it already: %w", err)
	}
	return nil
}

func (e *seeded) has(want string) error {
	got, err := e.ns().Setting(linux.HashSeedKey)
	if err == nil && got != want {
		err = fmt.Errorf("%s: its hash's seed is %s, not %s", e.node, got, want)
	}
	return err
}

func (e *seeded) apply() (err error) {
	if err := e.possible(); err != nil {
		return err
	}
	if err := e.allowed(); err != nil {
		return err
	}
	if e.before, err = e.sent(); err != nil {
		return err
	}
	err = e.ns().SetSetting(linux.HashSeedKey, e.seed)
	e.applied = err == nil
	return err
}

func (e *seeded) verify() error { return e.has(e.seed) }
func (e *seeded) clean() error  { return e.has(e.was) }

func (e *seeded) sent() (sum uint64, err error) {
	n := e.f.nodes[e.node]
	for _, l := range n.ns.Links() {
		one, err := n.ports.sent(l.Port)
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum, nil
}

func (e *seeded) hits() (uint64, error) {
	if e.healed {
		return e.final, nil
	}
	n, err := e.sent()
	return n - e.before, err
}

func (e *seeded) heal() error {
	if e.healed || !e.applied {
		return nil
	}
	n, err := e.hits()
	if err != nil {
		return err
	}
	if err := e.ns().SetSetting(linux.HashSeedKey, e.was); err != nil {
		return err
	}
	e.final, e.healed = n, true
	return nil
}
