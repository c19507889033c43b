package fabric

import (
	"errors"
	"path"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// Settings are what a scenario says of its NICs and its switches. A backend refuses, by the path of the key,
// what it can't do.
type Settings struct {
	NICs     NICSettings
	Switches SwitchSettings
}

// Validate says what is wrong whatever the backend, as strict.PathErrors.
func (s *Settings) Validate() error {
	return errors.Join(strict.Under("nics", s.NICs.Validate()), strict.Under("switches", s.Switches.Validate()))
}

// matches says whether a glob names a node.
func matches(pattern, node string) bool {
	ok, err := path.Match(pattern, node)
	return err == nil && ok
}

// checkOverride checks an override's node pattern, and that there is something in the override.
func checkOverride(pattern string, empty bool) error {
	switch _, err := path.Match(pattern, ""); {
	case pattern == "":
		return strict.At("node", "an override needs the node that it is for: a name or a glob (\"h3\", \"leaf*\")")
	case err != nil:
		return strict.At("node", "%q is no pattern: %w", pattern, err)
	case empty:
		return errors.New("the override changes nothing")
	}
	return nil
}

// CheckNodes refuses overrides for nodes that aren't there.
func (s *Settings) CheckNodes(t *topo.Topology) error {
	var errs []error
	find := func(key string, i int, pattern string, role topo.Role) {
		var names []string
		for j := range t.Nodes {
			if n := &t.Nodes[j]; n.Role == role {
				if matches(pattern, n.Name) {
					return
				}
				names = append(names, n.Name)
			}
		}
		errs = append(errs, strict.At(strictPath(key, i)+".node", "no %s is called %q%s", role, pattern, strict.DidYouMean(pattern, names)))
	}
	for i := range s.NICs.Override {
		find("nics.override", i, s.NICs.Override[i].Node, topo.Host)
	}
	for i := range s.Switches.Override {
		find("switches.override", i, s.Switches.Override[i].Node, topo.Switch)
	}
	return errors.Join(errs...)
}
