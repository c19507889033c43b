//go:build linux

package conformance_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel"
	"github.com/rocebed/rocebed/topo"
)

// lose drops a fraction of what the first host sends.
func lose(f *kernel.Fabric, fraction float64) (heal func() error, err error) {
	spec := faults.Spec{
		Name: "loss", Kind: faults.Loss, At: []string{f.Hosts()[0].NICs()[0].Port.String()}, Direction: faults.Egress,
		Probability: topo.Fraction(fraction),
	}
	if err := f.Injector().Check(spec); err != nil {
		return nil, err
	}
	var applied fabric.Applied
	err = wait("apply", func(done func(error)) {
		f.Injector().Apply(spec, func(a fabric.Applied, err error) { applied = a; done(err) })
	})
	if err != nil {
		return nil, err
	}
	return func() error {
		var hits uint64
		err := wait("count hits", func(done func(error)) {
			applied.Hits(func(n uint64, err error) { hits = n; done(err) })
		})
		if err == nil && hits == 0 {
			err = errors.New("the loss hit no packet")
		}
		return errors.Join(err, wait("heal", applied.Heal), wait("verify clean", applied.VerifyClean))
	}, nil
}

func wait(what string, start func(done func(error))) error {
	result := make(chan error, 1)
	start(func(err error) {
		select {
		case result <- err:
		default: // only the first word counts
		}
	})
	select {
	case err := <-result:
		return err
	case <-time.After(patience):
		return fmt.Errorf("%s: nothing for %v", what, patience)
	}
}
