package rnic

import (
	"errors"
	"testing"

	"github.com/rocebed/rocebed/workloads/verbs/conformance"
)

// provider is the device as the conformance suite wants it.
func provider(l *lab) conformance.Provider {
	return conformance.Provider{
		Name: "rnic",
		Open: func(host int) (conformance.Endpoint, error) {
			d, err := l.open(host)
			if err != nil {
				return conformance.Endpoint{}, err
			}
			return conformance.Endpoint{Device: d, GID: l.addrs[host].Netip()}, nil
		},
		Wait: func(done <-chan struct{}) error {
			return l.run(func() bool {
				select {
				case <-done:
					return true
				default:
					return false
				}
			})
		},
		Lose: func(fraction float64) (func() error, error) {
			if fraction <= 0 || fraction >= 1 {
				return nil, errors.New("lose some, not none nor all")
			}
			l.wires[0].lose = fraction
			return func() error { l.wires[0].lose = 0; return nil }, nil
		},
	}
}

func TestTheDeviceConformsToTheSpecification(t *testing.T) {
	conformance.Run(t, provider(newLab(false)))
}

func TestTheDeviceConformsOverIPv6AndAsBytesOnTheWire(t *testing.T) {
	l := newLab(true)
	l.bytes = true
	conformance.Run(t, provider(l))
}
