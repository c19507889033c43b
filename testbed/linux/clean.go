//go:build linux

package linux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CleanOptions say what to clean. The zero value takes every testbed whose keeper is dead.
type CleanOptions struct {
	Names []string // only these testbeds; nil: all
	All   bool     // living testbeds too: their keepers are asked to end, then made to
	// Wait is how long a living keeper has to take its testbed down itself; default 30 s.
	Wait time.Duration
	Log  *slog.Logger
}

// Cleaned is what Clean did with a testbed.
type Cleaned struct {
	Testbed string
	Living  int  // the process that holds it, when it was left alone
	Removed int  // things that a dead holder had left
	Ended   bool // a living keeper was ended
}

// Testbeds lists the testbeds that have state on this machine, living or dead, by name.
func Testbeds() ([]string, error) {
	dirs, err := os.ReadDir(StateRoot)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list testbeds: %w%s", err, asRoot(err))
	}
	var names []string
	for _, d := range dirs {
		if d.IsDir() && CheckName(d.Name()) == nil {
			names = append(names, d.Name())
		}
	}
	return names, nil
}

// asRoot is the next step after an error that root wouldn't have had.
func asRoot(err error) string {
	if errors.Is(err, os.ErrPermission) && os.Geteuid() != 0 {
		return " (testbeds are root's alone)"
	}
	return ""
}

// Clean removes what dead holders of testbeds left on this machine, and nothing else. What can't
// be removed is reported and doesn't keep it from the rest.
func Clean(ctx context.Context, opt CleanOptions) ([]Cleaned, error) {
	names, err := Testbeds()
	if err != nil {
		return nil, err
	}
	var done []Cleaned
	var errs []error
	for _, name := range names {
		if opt.Names != nil && !slices.Contains(opt.Names, name) {
			continue
		}
		c, err := cleanOne(ctx, name, opt)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		done = append(done, c)
	}
	restoreNetnsDir()
	return done, errors.Join(errs...)
}

func cleanOne(ctx context.Context, name string, opt CleanOptions) (Cleaned, error) {
	c := Cleaned{Testbed: name}
	entries, _, _ := readJournal(StateDir(name))
	t, err := Acquire(ctx, name)
	var held *HeldError
	if errors.As(err, &held) && !opt.All && dying(held.PID) {
		if err := awaitDeath(ctx, held.PID); err != nil {
			return c, fmt.Errorf("testbed %s: %w", name, err)
		}
		entries, _, _ = readJournal(StateDir(name))
		t, err = Acquire(ctx, name)
	}
	if errors.As(err, &held) {
		if !opt.All {
			c.Living = held.PID
			return c, nil
		}
		if err := endHolder(ctx, name, opt.Wait); err != nil {
			return c, err
		}
		c.Ended = true
		entries, _, _ = readJournal(StateDir(name))
		t, err = Acquire(ctx, name)
	}
	if err != nil {
		return c, err
	}
	c.Removed = len(entries)
	return c, t.Close(ctx)
}

// deathWithin bounds how long a process that was killed may take to end, in wall time: the kernel takes its queue pairs down one by one, and waits
// for what they have under way.
const deathWithin = 2 * time.Minute

// awaitDeath waits for a process that is on its way out.
func awaitDeath(ctx context.Context, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("wait for process %d, which was killed: %w", pid, err)
	}
	defer unix.Close(fd)
	if !ended(ctx, fd, deathWithin) {
		return errors.Join(ctx.Err(), fmt.Errorf("its holder, process %d, was killed and has not ended within %v", pid, deathWithin))
	}
	return nil
}

// dying says whether a process is on its way out: killed and not gone yet.
func dying(pid int) bool {
	const exiting, killed = 0x4, 1 << (uint(unix.SIGKILL) - 1) // PF_EXITING of include/linux/sched.h; a bit of a signal mask
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(f) > 6 {
		flags, _ := strconv.ParseUint(f[6], 10, 64)
		if f[0] == "Z" || f[0] == "X" || flags&exiting != 0 {
			return true
		}
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		key, mask, _ := strings.Cut(line, ":")
		if key == "SigPnd" || key == "ShdPnd" {
			if bits, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64); err == nil && bits&killed != 0 {
				return true
			}
		}
	}
	return false
}

// endHolder asks a testbed's holder to end, waits, and kills it when it doesn't.
func endHolder(ctx context.Context, name string, wait time.Duration) error {
	if wait == 0 {
		wait = 30 * time.Second
	}
	for {
		// The holder writes who it is right after it has the lock.
		pid, held := Living(name)
		if !held {
			return nil
		}
		if fd, err := unix.PidfdOpen(pid, 0); pid > 0 && err == nil {
			defer unix.Close(fd)
			if now, ok := Living(name); !ok || now != pid {
				continue
			}
			if pid == os.Getpid() {
				return fmt.Errorf("testbed %s is held by this process", name)
			}
			_ = unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0)
			if ended(ctx, fd, wait) {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("testbed %s: its keeper, process %d, was asked to end and still takes it down: %w", name, pid, err)
			}
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			if ended(context.WithoutCancel(ctx), fd, 5*time.Second) {
				return nil
			}
			return fmt.Errorf("testbed %s: its keeper, process %d, did not end when killed", name, pid)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (c Cleaned) String() string {
	var b strings.Builder
	b.WriteString(c.Testbed)
	switch {
	case c.Living > 0:
		fmt.Fprintf(&b, ": held by process %d, left alone", c.Living)
	case c.Ended && c.Removed == 0:
		b.WriteString(": taken down")
	case c.Ended:
		fmt.Fprintf(&b, ": its keeper was ended; removed %d things that it left", c.Removed)
	default:
		fmt.Fprintf(&b, ": removed %d things of a dead keeper", c.Removed)
	}
	return b.String()
}
