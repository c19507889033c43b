//go:build linux

package kernel

import (
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
)

var _ fabric.Halter = (*Fabric)(nil)

// Halt implements fabric.Halter: the program of a host stands still. rxe is in the kernel and goes on.
func (f *Fabric) Halt(host string, done func(error)) {
	h, err := f.halting(host)
	if err == nil && h.loop.Halted() {
		err = fmt.Errorf("%s: its program stands still already", host)
	}
	if err != nil {
		done(err)
		return
	}
	loop.Halt(answering{}, h.loop, func() { done(nil) })
}

// Resume implements fabric.Halter.
func (f *Fabric) Resume(host string, done func(error)) {
	h, err := f.halting(host)
	if err != nil {
		done(err)
		return
	}
	loop.Resume(answering{}, h.loop, func() { done(nil) })
}

// Kill implements fabric.Halter: no host has a process of its own.
func (f *Fabric) Kill(host string, done func(error)) {
	_, err := f.halting(host)
	done(err)
}

// State implements fabric.Halter.
func (f *Fabric) State(host string, done func(fabric.ProcessState, error)) {
	h, err := f.halting(host)
	switch {
	case err != nil:
		done("", err)
	case h.loop.Halted():
		done(fabric.ProcessStopped, nil)
	default:
		done(fabric.ProcessRuns, nil)
	}
}

func (f *Fabric) halting(name string) (*host, error) {
	for _, h := range f.hosts {
		if h.name == name {
			return h, nil
		}
	}
	return nil, fmt.Errorf("there is no rxe-host %s", name)
}

// answering stands for whoever hears that a loop stands still or goes on, on that loop.
type answering struct{ loop.Loop }

// Post implements loop.Loop.
func (answering) Post(fn func()) { fn() }
