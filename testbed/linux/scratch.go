//go:build linux

package linux

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Scratch runs fn in a new network namespace that has no name and that nobody else sees, and
// waits. The kernel takes the namespace back, with all interfaces in it, once fn has closed the
// sockets that it opened. It is for trying what this kernel can do.
func Scratch(fn func() error) error {
	h, err := openHome()
	if err != nil {
		return err
	}
	defer h.close()
	return h.away(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a scratch network namespace: %w", err)
		}
		return fn()
	})
}
