//go:build linux

package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/workloads/verbs/ibv"
)

// leastKernel is the first Linux whose rdma_rxe works in network namespaces.
var leastKernel = [2]int{7, 1}

// Built says why this binary can't make fabrics on any machine, the guest included; nil when it
// can.
func Built() error {
	if !ibv.Available {
		return ibv.ErrNotBuilt
	}
	return nil
}

// Capable says why this machine can't make rxe-hosts and linux-switches; nil when it can.
func Capable(ctx context.Context) error {
	if err := Built(); err != nil {
		return err
	}
	var errs []error
	if os.Geteuid() != 0 || linux.Rootless() {
		errs = append(errs, errors.New("it takes root"))
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return fmt.Errorf("uname: %w", err)
	}
	release := unix.ByteSliceToString(u.Release[:])
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("kernel release %q: %w", release, err)
	}
	if major < leastKernel[0] || major == leastKernel[0] && minor < leastKernel[1] {
		errs = append(errs, fmt.Errorf("its release %s is older than %d.%d, from which on rdma_rxe works in network namespaces", release, leastKernel[0], leastKernel[1]))
	}
	if len(errs) > 0 {
		return join(errs)
	}
	for _, module := range []string{"rdma_rxe", "sch_netem", "sch_htb", "sch_red"} {
		if _, err := os.Stat("/sys/module/" + module); err == nil {
			continue
		}
		if out, err := exec.CommandContext(ctx, "modprobe", module).CombinedOutput(); err != nil {
			errs = append(errs, fmt.Errorf("no %s (%s)", module, strings.TrimSpace(string(out))))
		}
	}
	return join(errs)
}

// join is errors.Join on one line.
func join(errs []error) error {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	if len(texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}
