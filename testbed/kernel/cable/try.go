//go:build linux

package cable

import (
	"errors"

	"github.com/cilium/ebpf/link"
)

// Try finds out whether this kernel can do what cables need: it loads the forwarding program and
// a stage of each kind for a pair of interfaces of the calling thread's namespace, attaches the
// programs, and takes them away again.
func Try(in, out int) (err error) {
	f, err := newForwarder(max(in, out))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	last, err := attach(in, f.prog, link.Tail())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, last.Close()) }()
	d := &wire{in: in, out: out, last: last}
	defer func() {
		for _, p := range d.stages {
			err = errors.Join(err, p.remove())
		}
	}()
	for _, m := range []Model{RandomLoss{0.5}, NthLoss{2}, BurstLoss{0.1, 0.1, 1, 0}, Corrupt{0.5}, Duplicate{0.5}, Overtake{0.5, 2}} {
		if err := d.place(Impairment{Stage: m}); err != nil {
			return err
		}
	}
	return nil
}
