package testbed

import (
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/topo/strict"
)

// FaultMatrix asks every backend that this rocebed has which kinds of faults it can, for the documentation.
func FaultMatrix() *faults.Matrix {
	m := &faults.Matrix{}
	for _, name := range registered() {
		m.Ask(name, func(yaml string) error { return CanFault(Backend(name), yaml) })
	}
	return m
}

// CanFault asks a backend whether it makes a fault, which is one line of YAML on the fabric of the kinds' examples. The error is the reason why not.
func CanFault(on Backend, yaml string) error {
	b := builders[on]
	if b == nil {
		return fmt.Errorf("%w: this rocebed has no backend %s", ErrIncapable, on)
	}
	d := loop.Dilation(1024)
	if b.Virtual {
		d = 1
	}
	return canFault(b, d, yaml)
}

// grounds are settings under which kinds are asked for: a fault may need what it turns off.
var grounds = []string{
	"",
	"switches: {ecn: {kmin: 100KB, kmax: 400KB, pmax: 20%}}\n",
	"nics: {dcqcn: mlx5}\n",
	"switches: {memory: 32MB, pfc: {}, ecn: {kmin: 100KB, kmax: 400KB, pmax: 20%}, watchdog: {detect: 1ms}}\n",
}

// canFault says what keeps a backend from making a fault; nil: nothing. It is asked on each ground that the backend has.
func canFault(b *Builder, d loop.Dilation, yaml string) (first error) {
	for _, ground := range grounds {
		if ground != "" && canOn(b, d, ground) != nil {
			continue
		}
		err := canOn(b, d, ground+"faults: ["+yaml+"]\n")
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func canOn(b *Builder, d loop.Dilation, more string) error {
	s, err := Parse("example.yaml", []byte(`apiVersion: rocebed/v1
name: example
topology: {spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 2}}
workloads: [{name: w, kind: write, from: [h1], to: [h4], messages: 1}]
`+more))
	if err == nil {
		err = b.Check(s, d)
	}
	var at *strict.PathError
	if errors.As(err, &at) {
		for deeper := at; errors.As(deeper.Err, &deeper); { // past the fault's name
			at = deeper
		}
		return at.Err
	}
	return err
}
