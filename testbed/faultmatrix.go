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
		b := builders[Backend(name)]
		d := loop.Dilation(1024)
		if b.Virtual {
			d = 1
		}
		m.Ask(name, func(yaml string) error { return canFault(b, d, yaml) })
	}
	return m
}

// canFault says what keeps a backend from making a fault; nil: nothing.
func canFault(b *Builder, d loop.Dilation, yaml string) error {
	s, err := Parse("example.yaml", fmt.Appendf(nil, `apiVersion: rocebed/v1
name: example
topology: {spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 2}}
workloads: [{name: w, kind: write, from: [h1], to: [h4], messages: 1}]
faults: [%s]
`, yaml))
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
