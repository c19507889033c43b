//go:build linux

package linux

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// ProgramIn replaces this process by a program in a node's namespace, as 'ip netns exec' does:
// standard streams, terminal, process number, and with them signals and the exit code, are the
// program's. /sys shows the namespace's devices, in a mount namespace of the program's own. It
// returns only when it fails. inode is the namespace's identity ([NodeInode]); another
// namespace of that name is not entered. The program, and what it starts, is ended with the
// testbed.
func ProgramIn(testbed, node string, inode uint64, argv, env []string) error {
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	path := namespacePath(NamespaceName(testbed, node))
	runtime.LockOSThread() // for good: this thread is the program from here on
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: open %s: %w", node, path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("%s: stat %s: %w", node, path, err)
	}
	if st.Ino != inode {
		return fmt.Errorf("%s: %s is not the namespace that testbed %s made", node, path, testbed)
	}
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("%s: enter network namespace: %w", node, err)
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("%s: make mount namespace: %w", node, err)
	}
	// What others unmount goes here too, or the program would keep their namespaces alive.
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("%s: make / a slave mount: %w", node, err)
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("%s: mount /sys: %w", node, err)
	}
	return unix.Exec(program, argv, environment(append(env, ProgramMark(testbed), "ROCEBED_NODE="+node)))
}

// environment is env with each name once: the last one counts, except that libraries to preload
// add up. A program would take the first.
func environment(env []string) []string {
	at := map[string]int{}
	var out []string
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		i, again := at[name]
		switch {
		case !again:
			at[name] = len(out)
			out = append(out, e)
		case name == "LD_PRELOAD":
			_, before, _ := strings.Cut(out[i], "=")
			out[i] = name + "=" + value + ":" + before
		default:
			out[i] = e
		}
	}
	return out
}

// NodeInode is the identity of a node's namespace in a testbed, as its journal has it; for
// processes that don't hold the testbed.
func NodeInode(testbed, node string) (uint64, error) {
	var st unix.Stat_t
	path := namespacePath(NamespaceName(testbed, node))
	entries, _, err := readJournal(StateDir(testbed))
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if e.Kind != KindNamespace || nodeOf(e.ID) != node {
			continue
		}
		if err := unix.Stat(path, &st); err != nil {
			return 0, fmt.Errorf("%s: stat %s: %w", node, path, err)
		}
		if fmt.Sprint(st.Ino) != e.ID[1] {
			break
		}
		return st.Ino, nil
	}
	return 0, fmt.Errorf("testbed %s has no namespace for a node %s", testbed, node)
}
