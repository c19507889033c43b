//go:build linux

package kernel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel/nldev"
	"github.com/rocebed/rocebed/testbed/linux"
)

// kindMode is a changed RDMA namespace mode in a testbed's journal: the mode to go back to. It
// is restored after the namespaces are gone, since the kernel refuses while there are any.
const (
	kindMode  = "rdma-mode"
	orderMode = linux.OrderNamespace + 10
)

// setMode gives the machine the RDMA namespace mode that is wanted, before there are namespaces.
// Where auto can't have its choice because other namespaces exist, it takes what there is.
func setMode(t *linux.Testbed, want fabric.RDMAMode, chosen bool, warn func(string)) (exclusive bool, err error) {
	c, err := nldev.Open()
	if err != nil {
		return false, err
	}
	defer c.Close()
	shared, err := c.Shared()
	if err != nil {
		return false, err
	}
	if shared == (want == fabric.RDMAShared) {
		return !shared, nil
	}
	now := fabric.RDMAShared
	if !shared {
		now = fabric.RDMAExclusive
	}
	if err := t.Own(kindMode, string(now)); err != nil {
		return false, err
	}
	// Namespaces that were removed just now may not be gone yet.
	for until := time.Now().Add(time.Second); ; <-time.After(20 * time.Millisecond) {
		err = c.SetShared(!shared)
		if err == nil {
			return shared, nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(until) {
			break
		}
	}
	if derr := t.Disown(kindMode, string(now)); derr != nil {
		return false, errors.Join(err, derr)
	}
	if errors.Is(err, unix.EBUSY) {
		if !chosen {
			warn(fmt.Sprintf("the machine's RDMA subsystem is in %s mode and can't be set to %s while other network namespaces exist: taken as it is", now, want))
			return !shared, nil
		}
		err = fmt.Errorf("%w: other network namespaces exist; remove them, or leave nics.rdma on auto", err)
	}
	return false, err
}

// restoreMode puts the mode back if the machine lets it: a namespace that was just removed, or
// another testbed's, keeps it as it is.
func restoreMode(ctx context.Context, s *linux.Scene, ids [][]string) error {
	c, err := nldev.Open()
	if err != nil {
		return nil
	}
	defer c.Close()
	for _, id := range ids {
		if len(id) != 1 {
			continue
		}
		until := time.Now()
		if !linux.OtherNamespaces() {
			until = until.Add(15 * time.Second) // ours are on their way out
		}
		for {
			err := c.SetShared(id[0] == string(fabric.RDMAShared))
			if err == nil {
				break
			}
			if !errors.Is(err, unix.EBUSY) || time.Now().After(until) || ctx.Err() != nil {
				s.Log.Info("the RDMA namespace mode stays as it is", "reason", err)
				break
			}
			<-time.After(20 * time.Millisecond)
		}
	}
	return nil
}
