//go:build linux

package tc

import "github.com/rocebed/rocebed/testbed/kernel/nl"

// Engine is the queueing discipline of the port engine, whose declaration is in the engine's tables and not in the qdisc.
type Engine struct{}

const engineKind = "rocebed"

// Kind is "rocebed".
func (Engine) Kind() string      { return engineKind }
func (Engine) options(*nl.Batch) {}
func (e Engine) sameAs(got Spec) error {
	if got != e {
		return differs("kind", engineKind, got.Kind())
	}
	return nil
}
