//go:build linux

package linux

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// netnsDir is where iproute2 looks for named namespaces.
const netnsDir = "/run/netns"

func namespacePath(name string) string { return filepath.Join(netnsDir, name) }

// netnsMark is locked, shared, by every testbed that has names bound in /run/netns, and holds the
// boot in which one of them bound /run/netns on itself. The last to leave takes the bind back.
const netnsMark = "/run/rocebed-netns"

// prepareNetnsDir makes /run/netns a shared mount, as 'ip netns add' does: a process in another
// mount namespace ('ip netns exec' makes one) then sees a namespace's name go when we remove it,
// and doesn't keep all namespaces alive. It must be done before the first name is bound there,
// or the bind would hide it. Close the file to say that no name of ours is bound there any more.
func prepareNetnsDir() (*os.File, error) {
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return nil, err
	}
	mark, err := lockMark(unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	if err := shareNetnsDir(); err != nil {
		mark.Close()
		return nil, err
	}
	return mark, nil
}

// shareNetnsDir holds the lock that iproute2 holds for the same thing.
func shareNetnsDir() error {
	dir, err := os.Open(netnsDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", netnsDir, err)
	}
	err = unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, "")
	if err == nil {
		return nil
	}
	if err != unix.EINVAL {
		return fmt.Errorf("make %s a shared mount: %w", netnsDir, err)
	}
	// It is no mount yet.
	if err := os.WriteFile(netnsMark, []byte(bootID()), 0o600); err != nil {
		return err
	}
	if err := unix.Mount(netnsDir, netnsDir, "none", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s on itself: %w", netnsDir, err)
	}
	if err := unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("make %s a shared mount: %w", netnsDir, err)
	}
	return nil
}

// restoreNetnsDir takes back what shareNetnsDir did, when no testbed has a name bound there and
// nobody else has either: the kernel refuses (EBUSY) then.
func restoreNetnsDir() {
	mark, err := lockMark(unix.LOCK_EX | unix.LOCK_NB)
	if err != nil {
		return
	}
	defer mark.Close()
	if boot, err := os.ReadFile(netnsMark); err == nil && string(boot) == bootID() {
		if err := unix.Unmount(netnsDir, 0); err != nil && err != unix.EINVAL {
			return
		}
	}
	_ = os.Remove(netnsMark)
}

func lockMark(how int) (*os.File, error) {
	for {
		f, err := os.OpenFile(netnsMark, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), how); err != nil {
			f.Close()
			if err == unix.EINTR {
				continue
			}
			return nil, fmt.Errorf("lock %s: %w", netnsMark, err)
		}
		if sameFile(f, netnsMark) {
			return f, nil
		}
		f.Close()
	}
}

// publish binds the namespace to its name. A name that exists is never taken over, except one
// that is left from before this boot: an empty file that no namespace is bound to.
func (n *Namespace) publish() error {
	path := n.Path()
	flags := unix.O_RDONLY | unix.O_CREAT | unix.O_EXCL | unix.O_CLOEXEC
	fd, err := unix.Open(path, flags, 0)
	if err == unix.EEXIST && emptyName(path) && olderThanBoot(path) {
		_ = unix.Unlink(path)
		fd, err = unix.Open(path, flags, 0)
	}
	if err == unix.EEXIST {
		return fmt.Errorf("%s: %s exists and is not this testbed's: remove it ('ip netns del %s') or choose another testbed name: %w", n.node, path, n.name, err)
	}
	if err != nil {
		return fmt.Errorf("%s: name network namespace %s: %w", n.node, path, err)
	}
	unix.Close(fd)
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", n.fd), path, "none", unix.MS_BIND, ""); err != nil {
		_ = unix.Unlink(path)
		return fmt.Errorf("%s: bind network namespace to %s: %w", n.node, path, err)
	}
	return nil
}

// OtherNamespaces says whether a network namespace beside the initial one has a name in /run/netns
// or a process in it. One that has neither is on its way out, or held open by a descriptor.
func OtherNamespaces() bool {
	if names, err := os.ReadDir(netnsDir); err == nil && len(names) > 0 {
		return true
	}
	mine, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return true
	}
	procs, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, p := range procs {
		if ns, err := os.Readlink(p); err == nil && ns != mine {
			return true
		}
	}
	return false
}

// emptyName says whether path is an empty plain file: a name that nothing is bound to.
func emptyName(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size == 0 && !onNSFS(path)
}

func onNSFS(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && int64(fs.Type) == unix.NSFS_MAGIC
}

func olderThanBoot(path string) bool {
	var st unix.Stat_t
	var now, up unix.Timespec
	if unix.Lstat(path, &st) != nil || unix.ClockGettime(unix.CLOCK_REALTIME, &now) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return false
	}
	return st.Ctim.Sec < now.Sec-up.Sec-1
}
