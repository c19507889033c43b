//go:build linux

package linux

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A world is what a user who isn't root has instead: a user namespace in which it is root, a network namespace that threads return to, and a mount namespace in which
// /run is its own, so that testbeds are made, found and cleaned there as they are elsewhere. A user has one world.
// Its anchor, a process that does nothing, keeps it as long as a process of ours is in it.
//
// The world's folder holds: lock, for who looks for the anchor or starts one; anchor, which process that is; members, which every
// process in the world holds a shared lock of.

const (
	worldFolder = "ROCEBED_WORLD"        // in the environment of all processes in a world
	worldCwd    = "ROCEBED_WORLD_CWD"    // where a process that enters one was
	worldStage  = "ROCEBED_WORLD_ANCHOR" // set for the anchor, or for who tries whether there could be one: "anchor" or "try"
)

// ErrNoWorld says that there is no world to enter.
var ErrNoWorld = errors.New("this user has no testbeds")

// Rootless says that this process is root in a user namespace alone.
func Rootless() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	f := strings.Fields(string(b))
	return err == nil && (len(f) != 3 || f[0] != "0" || f[1] != "0" || f[2] != "4294967295")
}

// InWorld must be called first of all. In the anchor of a world it doesn't return; in a process that has entered
// one it does what is left to do.
func InWorld() {
	folder := os.Getenv(worldFolder)
	switch stage := os.Getenv(worldStage); {
	case stage != "":
		os.Exit(beAnchor(stage, folder))
	case folder == "" || !Rootless():
		return
	}
	if cwd, ok := os.LookupEnv(worldCwd); ok {
		_ = os.Chdir(cwd)
		os.Unsetenv(worldCwd)
	}
	if _, err := member(folder, unix.FD_CLOEXEC); err != nil {
		fmt.Fprintln(os.Stderr, "rocebed:", err)
	}
}

// EnterWorld runs this command again as root of the user's world, in place of this process. It returns only when it can't: ErrNoWorld
// when there is none and none is to be made, else why.
func EnterWorld(create bool) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	folder, err := worldDir(create)
	if err != nil {
		return err
	}
	lock, err := lockFile(filepath.Join(folder, "lock"), unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	pid, ok := livingAnchor(folder)
	if !ok {
		if !create {
			return ErrNoWorld
		}
		if pid, err = startAnchor(exe, folder, "anchor"); err != nil {
			return err
		}
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return fmt.Errorf("enter user namespace: %w (it is in util-linux)", err)
	}
	if _, err := member(folder, 0); err != nil { // kept by what this process becomes
		return err
	}
	env := append(os.Environ(), worldFolder+"="+folder, worldCwd+"="+cwd)
	argv := append([]string{"nsenter", "-t", strconv.Itoa(pid), "-U", "-m", "-n", "--preserve-credentials", "--", exe}, os.Args[1:]...)
	return fmt.Errorf("enter user namespace: %w", unix.Exec(nsenter, argv, env))
}

// UserNamespaces says why this user can't have a world; nil when it can.
func UserNamespaces() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	_, err = startAnchor(exe, "", "try")
	return err
}

// worldDir is the folder of the user's world.
func worldDir(create bool) (string, error) {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		dir = filepath.Join(os.TempDir(), "rocebed-"+strconv.Itoa(os.Getuid()))
	}
	dir = filepath.Join(dir, "rocebed")
	var st unix.Stat_t
	err := unix.Stat(dir, &st)
	if errors.Is(err, unix.ENOENT) && create {
		if err = os.MkdirAll(dir, 0o700); err == nil {
			err = unix.Stat(dir, &st)
		}
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return "", ErrNoWorld
	case err != nil:
		return "", fmt.Errorf("folder of the user's testbeds %s: %w", dir, err)
	case int(st.Uid) != os.Getuid():
		return "", fmt.Errorf("folder of the user's testbeds %s belongs to user %d (choose another by XDG_RUNTIME_DIR)", dir, st.Uid)
	}
	return dir, nil
}

// lockFile opens a file and locks it, shared or not.
func lockFile(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), how)
		if err == nil {
			return f, nil
		}
		if err != unix.EINTR {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
}

// member makes this process one of the world's, for as long as the descriptor is open.
func member(folder string, flags int) (fd int, err error) {
	fd, err = unix.Open(filepath.Join(folder, "members"), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err == nil {
		if err = unix.Flock(fd, unix.LOCK_SH); err == nil {
			_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFD, flags)
		}
	}
	if err != nil {
		return -1, fmt.Errorf("folder of the user's testbeds %s: %w", folder, err)
	}
	return fd, nil
}

// livingAnchor finds the anchor. The caller has the lock.
func livingAnchor(folder string) (pid int, ok bool) {
	b, err := os.ReadFile(filepath.Join(folder, "anchor"))
	var start uint64
	if err != nil {
		return 0, false
	}
	if _, err := fmt.Sscan(string(b), &pid, &start); err != nil {
		return 0, false
	}
	return pid, start != 0 && startTime(pid) == start
}

// startAnchor starts a process in a user and a mount namespace of its own, where this user is root, and waits until it has
// made a world of it.
func startAnchor(exe, folder, stage string) (pid int, err error) {
	ready, theirs, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer ready.Close()
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), worldStage+"="+stage, worldFolder+"="+folder)
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true, Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return 0, fmt.Errorf("make a user namespace: %w%s", err, whyNoNamespace())
	}
	said, _ := io.ReadAll(io.LimitReader(ready, 4096))
	if string(said) == "ready" {
		if stage == "try" {
			_ = cmd.Wait()
		}
		return cmd.Process.Pid, nil
	}
	_ = cmd.Wait()
	return 0, fmt.Errorf("make a user namespace: %s%s", strings.TrimSpace(string(said)), whyNoNamespace())
}

// whyNoNamespace names the settings that commonly keep users from namespaces.
func whyNoNamespace() string {
	for _, s := range []struct{ file, bad, name string }{
		{"/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces is 0: an administrator can raise it"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone is 0: an administrator can set it to 1"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns is 1: an administrator can set it to 0, or allow rocebed by an AppArmor profile"},
	} {
		if b, err := os.ReadFile(s.file); err == nil && strings.TrimSpace(string(b)) == s.bad {
			return " (" + s.name + ")"
		}
	}
	return " (container managers and administrators can forbid user namespaces to users)"
}

// beAnchor is the anchor's life: it makes the world, says so, and ends when nobody has been in it for a moment.
func beAnchor(stage, folder string) int {
	runtime.LockOSThread()
	ready := os.NewFile(3, "ready")
	if err := ownRun(); err != nil {
		fmt.Fprint(ready, err)
		return 1
	}
	if stage == "try" {
		fmt.Fprint(ready, "ready")
		return 0
	}
	self := fmt.Sprintf("%d %d\n", os.Getpid(), startTime(os.Getpid()))
	if err := os.WriteFile(filepath.Join(folder, "anchor"), []byte(self), 0o600); err != nil {
		fmt.Fprint(ready, err)
		return 1
	}
	// Who started this has the lock until it is a member itself.
	fmt.Fprint(ready, "ready")
	ready.Close()
	for {
		members, err := lockFile(filepath.Join(folder, "members"), unix.LOCK_EX)
		if err != nil {
			return 1
		}
		members.Close()
		lock, err := lockFile(filepath.Join(folder, "lock"), unix.LOCK_EX)
		if err != nil {
			return 1
		}
		// With the lock, nobody comes in.
		fd, err := unix.Open(filepath.Join(folder, "members"), unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return 1
		}
		if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.Remove(filepath.Join(folder, "anchor"))
			return 0
		}
		unix.Close(fd)
		lock.Close()
	}
}

// ownRun gives this mount namespace a /run of its own, in which all is that was there, but what testbeds keep there.
func ownRun() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	old, err := os.ReadDir("/run")
	if err != nil {
		return err
	}
	const fresh = "/tmp" // hidden for as long as it takes
	if err := unix.Mount("tmpfs", fresh, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=256m"); err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	for _, e := range old {
		from, to := filepath.Join("/run", e.Name()), filepath.Join(fresh, e.Name())
		switch {
		case e.Name() == filepath.Base(StateRoot) || e.Name() == filepath.Base(netnsDir) || e.Name() == filepath.Base(netnsMark):
			continue
		case e.Type()&os.ModeSymlink != 0:
			if target, err := os.Readlink(from); err == nil {
				_ = os.Symlink(target, to)
			}
			continue
		case e.IsDir():
			err = os.Mkdir(to, 0o755)
		default:
			err = os.WriteFile(to, nil, 0o600)
		}
		if err != nil {
			return err
		}
		if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			_ = os.Remove(to) // what can't be bound is done without
		}
	}
	if err := os.MkdirAll(filepath.Join(fresh, filepath.Base(netnsDir)), 0o755); err != nil {
		return err
	}
	if err := unix.Mount(fresh, "/run", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("put the tmpfs on /run: %w", err)
	}
	return nil
}
