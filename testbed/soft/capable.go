//go:build linux

package soft

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/testbed/linux"
)

// LeastDilation is the least that calibration chooses: a general-purpose kernel wakes a thread some hundred microseconds late
// now and then, and that is to be less than what KeepUp allows.
const LeastDilation = 16

// leastKernel is the first Linux that has all of what this backend uses: epoll_pwait2, PACKET_IGNORE_OUTGOING.
var leastKernel = [2]int{5, 15}

// Capable says why this process can't make soft-hosts and soft-switches; nil when it can.
func Capable() error {
	if err := newEnough(); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		if err := Rootless(); err != nil {
			return err
		}
		return errors.New("it takes root, or a user namespace, which the rocebed command enters by itself")
	}
	return nil
}

// Rootless says why a user who isn't root can't either, in a user namespace; nil when one can.
func Rootless() error {
	if err := newEnough(); err != nil {
		return err
	}
	if err := linux.UserNamespaces(); err != nil {
		return fmt.Errorf("it takes root, or a user namespace: %w", err)
	}
	return nil
}

func newEnough() error {
	release, major, minor, err := kernelVersion()
	if err != nil {
		return err
	}
	if major < leastKernel[0] || major == leastKernel[0] && minor < leastKernel[1] {
		return fmt.Errorf("its kernel's release %s is older than %d.%d", release, leastKernel[0], leastKernel[1])
	}
	return nil
}

func kernelVersion() (release string, major, minor int, err error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", 0, 0, fmt.Errorf("uname: %w", err)
	}
	release = unix.ByteSliceToString(u.Release[:])
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return release, 0, 0, fmt.Errorf("kernel release %q: %w", release, err)
	}
	return release, major, minor, nil
}
