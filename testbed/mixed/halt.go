//go:build linux

package mixed

import "github.com/rocebed/rocebed/testbed/fabric"

var _ fabric.Halter = (*Fabric)(nil)

func (f *Fabric) halter(host string) fabric.Halter {
	if f.soft.Host(host) != nil {
		return f.soft
	}
	return f.Fabric
}

// Halt implements fabric.Halter.
func (f *Fabric) Halt(host string, done func(error)) { f.halter(host).Halt(host, done) }

// Resume implements fabric.Halter.
func (f *Fabric) Resume(host string, done func(error)) { f.halter(host).Resume(host, done) }

// Kill implements fabric.Halter.
func (f *Fabric) Kill(host string, done func(error)) { f.halter(host).Kill(host, done) }

// State implements fabric.Halter.
func (f *Fabric) State(host string, done func(fabric.ProcessState, error)) {
	f.halter(host).State(host, done)
}
