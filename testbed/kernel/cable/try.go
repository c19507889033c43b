//go:build linux

package cable

import (
	"errors"

	"github.com/cilium/ebpf"

	"github.com/rocebed/rocebed/testbed/kernel/nl"
	"github.com/rocebed/rocebed/testbed/kernel/tc"
)

// Try finds out whether this kernel can do what cables need: it loads the forwarding program and
// a stage of each kind for a pair of interfaces of the calling thread's namespace, puts them to
// work, and takes them away again.
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
	var stages []*Stage
	defer func() {
		for _, s := range stages {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, m := range []Model{RandomLoss{0.5}, NthLoss{2}, BurstLoss{0.1, 0.1, 1, 0}, Corrupt{0.5}, Duplicate{0.5}, Overtake{0.5, 2}} {
		s, err := newStage(f, m, 1, out)
		if err != nil {
			return err
		}
		stages = append(stages, s)
	}
	var progs []*ebpf.Program
	for _, s := range stages {
		progs = append(progs, s.prog)
	}
	return f.fill(in, 0, progs)
}
