//go:build linux

package linux

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// StateRoot holds a folder for every testbed that lives, or died without cleaning up.
const StateRoot = "/run/rocebed"

// StateDir is a testbed's folder: its lock, its journal, and what its keeper puts there.
func StateDir(testbed string) string { return filepath.Join(StateRoot, testbed) }

// HeldError says that a testbed belongs to a living process.
type HeldError struct {
	Testbed string
	PID     int // the holder; 0 when it has not said yet
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("testbed %s is held by process %d: take it down with 'rocebed down %s', or choose another name", e.Testbed, e.PID, e.Testbed)
}

// lock takes a testbed's lock without waiting. The kernel releases it when the process that
// holds it ends, however it ends.
func lock(testbed string) (*os.File, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("testbed %s: making network namespaces needs root: %w", testbed, unix.EPERM)
	}
	dir := StateDir(testbed)
	deadline := time.Now().Add(2 * time.Second)
	for {
		if err := os.MkdirAll(StateRoot, 0o700); err != nil {
			return nil, fmt.Errorf("testbed %s: %w", testbed, err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			if errors.Is(err, os.ErrNotExist) {
				continue // the last testbed's end took the root with it just now
			}
			return nil, fmt.Errorf("testbed %s: %w", testbed, err)
		}
		f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, os.ErrNotExist) {
			continue // its folder was taken away just now
		}
		if err != nil {
			return nil, fmt.Errorf("testbed %s: %w", testbed, err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				pid, alive := holder(testbed)
				if alive || time.Now().After(deadline) {
					return nil, &HeldError{Testbed: testbed, PID: pid}
				}
				time.Sleep(time.Millisecond) // it has the lock and not said so yet, or is on its way out
				continue
			}
			return nil, fmt.Errorf("testbed %s: lock: %w", testbed, err)
		}
		if !sameFile(f, filepath.Join(dir, "lock")) {
			f.Close() // a lock that was taken away while we waited for it locks nothing
			continue
		}
		if err := writeHolder(f); err != nil {
			f.Close()
			return nil, fmt.Errorf("testbed %s: %w", testbed, err)
		}
		return f, nil
	}
}

func sameFile(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}

func writeHolder(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(fmt.Sprintf("%d %d\n", os.Getpid(), startTime(os.Getpid()))), 0)
	return err
}

// unlock gives the lock up. The file says so first, so that nobody takes this process, which may
// live on, for the holder.
func unlock(f *os.File) {
	_ = f.Truncate(0)
	f.Close()
}

// holder is the process that has a testbed's lock, as the lock's file tells; its start time is
// written there too, so that a number that was given out again is told apart.
func holder(testbed string) (pid int, alive bool) {
	b, err := os.ReadFile(filepath.Join(StateDir(testbed), "lock"))
	if err != nil {
		return 0, false
	}
	var start uint64
	if _, err := fmt.Sscan(string(b), &pid, &start); err != nil {
		return 0, false
	}
	return pid, start != 0 && startTime(pid) == start
}

// Living is the process that holds a testbed; false: none does.
func Living(testbed string) (pid int, ok bool) { return holder(testbed) }

// startTime is when a process began, in clock ticks since boot (field 22 of /proc/PID/stat); with
// its number it tells a process from every other of this boot. It is 0 for one that is gone.
func startTime(pid int) uint64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	s := string(b)
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) < 20 {
		return 0
	}
	if f[0] == "Z" {
		return 0 // it has ended; only its parent hasn't noticed
	}
	t, _ := strconv.ParseUint(f[19], 10, 64)
	return t
}
