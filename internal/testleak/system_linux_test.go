package testleak

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// The main thread never ends, so no test may get it to switch its namespace: it stays with
// the main goroutine.
func init() { runtime.LockOSThread() }

func TestAnOpenDescriptorIsLeaked(t *testing.T) {
	s := take()
	f, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	expectLeak(t, s, "descriptor "+fmt.Sprint(f.Fd())+" /dev/null")
	f.Close()
	expectNone(t, s)
}

func TestAChildThatNobodyWaitedForIsLeaked(t *testing.T) {
	s := take()
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	expectLeak(t, s, fmt.Sprintf("child process %d (cat)", cmd.Process.Pid))
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	expectNone(t, s)
}

// asRoot runs do on a thread of its own that no other goroutine gets afterwards.
func asRoot(t *testing.T, do func() error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes namespaces and mounts, which needs root")
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		done <- do()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestANamedNetworkNamespaceIsLeaked(t *testing.T) {
	s := take()
	path := filepath.Join(netnsDir, fmt.Sprintf("testleak%d", os.Getpid()))
	asRoot(t, func() error {
		if err := os.MkdirAll(netnsDir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
		if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
			return err
		}
		return syscall.Mount(fmt.Sprintf("/proc/self/task/%d/ns/net", syscall.Gettid()), path, "", syscall.MS_BIND, "")
	})
	expectLeak(t, s, "network namespace "+path)
	if err := syscall.Unmount(path, 0); err != nil {
		t.Error(err)
	}
	if err := os.Remove(path); err != nil {
		t.Error(err)
	}
	expectNone(t, s)
}

func TestAThreadLeftInAnotherNetworkNamespaceIsLeaked(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("makes a namespace, which needs root")
	}
	s := take()
	inside, leave := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		inside <- syscall.Unshare(syscall.CLONE_NEWNET)
		<-leave
	}()
	if err := <-inside; err != nil {
		t.Fatal(err)
	}
	expectLeak(t, s, "thread in another network namespace")
	close(leave)
	expectNone(t, s)
}

func TestAMountIsLeaked(t *testing.T) {
	s := take()
	dir := t.TempDir()
	asRoot(t, func() error { return syscall.Mount("testleak", dir, "tmpfs", 0, "size=64k") })
	expectLeak(t, s, "mount "+dir+" (tmpfs)")
	if err := syscall.Unmount(dir, 0); err != nil {
		t.Error(err)
	}
	expectNone(t, s)
}

func TestWhatALivingTestbedOfAnotherProcessHoldsIsNoLeak(t *testing.T) {
	dir := t.TempDir()
	bed := filepath.Join(dir, "bed")
	if err := os.MkdirAll(bed, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bed, "journal"), []byte("netns rocebed-h1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(bed, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if held := heldByOthers(dir, 1); len(held) != 0 {
		t.Errorf("nobody holds the lock, yet %q is held", held)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if held := heldByOthers(dir, 1); !strings.Contains(string(held), "rocebed-h1") {
		t.Errorf("the lock is held by another process than 1, yet only %q is held", held)
	}
	if held := heldByOthers(dir, os.Getpid()); len(held) != 0 {
		t.Errorf("this process holds the lock itself, yet %q counts as another's", held)
	}
}
