package bed

import (
	"errors"
	"fmt"
	"time"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

// Lose drops a fraction of what a host sends by its first port, until heal is called, which says whether any packet was hit.
func Lose(f fabric.Fabric, host string, fraction float64) (heal func() error, err error) {
	spec := faults.Spec{
		Name: "loss", Kind: faults.Loss, At: []string{f.Host(host).NICs()[0].Port.String()}, Direction: faults.Egress,
		Probability: topo.Fraction(fraction),
	}
	if err := f.Injector().Check(spec); err != nil {
		return nil, err
	}
	var applied fabric.Applied
	err = Wait("apply", func(done func(error)) {
		f.Injector().Apply(spec, func(a fabric.Applied, err error) { applied = a; done(err) })
	})
	if err != nil {
		return nil, err
	}
	return func() error {
		var hits uint64
		err := Wait("count hits", func(done func(error)) {
			applied.Hits(func(n uint64, err error) { hits = n; done(err) })
		})
		if err == nil && hits == 0 {
			err = errors.New("the loss hit no packet")
		}
		return errors.Join(err, Wait("heal", applied.Heal), Wait("verify clean", applied.VerifyClean))
	}, nil
}

// Patience is how long anything may take that must happen, in wall time.
const Patience = 60 * time.Second

// Wait makes a call that completes by callback, on a fabric in real time.
func Wait(what string, start func(done func(error))) error {
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
	case <-time.After(Patience):
		return fmt.Errorf("%s: nothing for %v", what, Patience)
	}
}
