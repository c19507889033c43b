package sim

import (
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
)

var _ fabric.Halter = (*Fabric)(nil)

// Halt implements fabric.Halter: the host's node stands still, the NICs with the program.
func (f *Fabric) Halt(host string, done func(error)) {
	switch n := f.nodes[host]; {
	case n == nil || f.byName[host] == nil:
		done(fmt.Errorf("there is no host %s", host))
	case f.halted[host]:
		done(fmt.Errorf("%s stands still already", host))
	default:
		f.halted[host] = true
		loop.Halt(f.control, n, func() { done(nil) })
	}
}

// Resume implements fabric.Halter.
func (f *Fabric) Resume(host string, done func(error)) {
	if !f.halted[host] {
		done(nil)
		return
	}
	delete(f.halted, host)
	loop.Resume(f.control, f.nodes[host], func() { done(nil) })
}

// Kill implements fabric.Halter: no host has a process of its own.
func (f *Fabric) Kill(_ string, done func(error)) { done(nil) }

// State implements fabric.Halter.
func (f *Fabric) State(host string, done func(fabric.ProcessState, error)) {
	if f.halted[host] {
		done(fabric.ProcessStopped, nil)
		return
	}
	done(fabric.ProcessRuns, nil)
}
