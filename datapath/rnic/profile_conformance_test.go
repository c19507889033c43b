package rnic

import (
	"slices"
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
			made := provider(l)
			if p, _ := ProfileNamed(name); p.EndlessRetry { // of rdma_rxe's departures the one that the profile has
				open := made.Open
				made.Open = func(host int) (conformance.Endpoint, error) {
					e, err := open(host)
					e.Departures = slices.DeleteFunc(slices.Clone(conformance.Rxe), func(d conformance.Departure) bool { return d.ID != conformance.SevenRetriesForEver })
					return e, err
				}
			}
			conformance.Run(t, made)
		})
	}
}
