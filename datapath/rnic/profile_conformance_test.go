package rnic

import (
	"testing"

	"github.com/rocebed/rocebed/workloads/verbs/conformance"
)

func TestADeviceOfEveryProfileConforms(t *testing.T) {
	for _, name := range ProfileNames() {
		t.Run(name, func(t *testing.T) {
			l := newLab(false)
			l.config = func(c *Config) {
				p, err := ProfileNamed(name)
				if err != nil {
					t.Fatal(err)
				}
				c.Profile = p
			}
			conformance.Run(t, provider(l))
		})
	}
}
