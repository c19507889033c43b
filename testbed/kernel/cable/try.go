//go:build linux

package cable

import (
	"errors"

	"github.com/rocebed/rocebed/testbed/kernel/nl"
	"github.com/rocebed/rocebed/testbed/kernel/tc"
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
	conn, err := tc.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	var b nl.Batch
	tc.AppendHookPlace(&b, in, "try")
	tc.AppendHook(&b, in, f.prog.FD(), "try")
	if err := conn.Send(&b); err != nil {
		return err
	}
	defer func() {
		tc.AppendUnhook(&b, in, "try")
		err = errors.Join(err, conn.Send(&b))
	}()
	d := &wire{in: in, out: out}
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
