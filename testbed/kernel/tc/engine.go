//go:build linux

package tc

import (
	"strings"

	"github.com/rocebed/rocebed/testbed/kernel/nl"
)

// Engine is the queueing discipline of a port engine, whose declaration is in the engine's tables and not in the qdisc.
type Engine struct{ Name string }

const enginePrefix = "rb_"

// Kind is the discipline's own name.
func (e Engine) Kind() string    { return e.Name }
func (Engine) options(*nl.Batch) {}
func (e Engine) sameAs(got Spec) error {
	if got != e {
		return differs("kind", e.Name, got.Kind())
	}
	return nil
}

// parseEngine knows engines' disciplines by the beginning of their names.
func parseEngine(kind string) Spec {
	if strings.HasPrefix(kind, enginePrefix) {
		return Engine{kind}
	}
	return nil
}
