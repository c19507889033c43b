//go:build linux

package linux

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The kinds that this room removes by itself.
const (
	// KindProcess is a process that the testbed started: its number and its start time, as
	// [ProcessID] gives them. It is asked to end, then made to.
	KindProcess = "process"
	// KindPrograms is every process in the testbed's namespaces that has the testbed's mark
	// ([ProgramMark]) in its environment: what was started there, and what that started. It has
	// no identity of its own. Processes that others put into the namespaces have no mark.
	KindPrograms = "programs"
	// KindNamespace is a network namespace: its name, inode and cookie, and its node's name.
	KindNamespace = "netns"
	// KindFile is a file, socket or pinned BPF object: its path.
	KindFile = "file"
)

// Where kinds stand in the order of removal: what uses others goes before them.
const (
	OrderProcess   = 100 // programs, before what they hold open
	OrderDevice    = 200 // rdma links, before the interfaces under them
	OrderNamespace = 900 // with every interface inside
	OrderFile      = 950
)

// Remover takes away things of one kind, newest first, and returns when they are gone. What is
// gone already, or isn't what the testbed made, is no error; a Remover may be called again with
// the same things.
type Remover func(ctx context.Context, s *Scene, ids [][]string) error

// Scene is what a Remover has to work with.
type Scene struct {
	Testbed string
	Log     *slog.Logger
	spaces  map[string]*Namespace
	bed     *Testbed
}

// Namespace is the namespace of a node, where it still exists. Things are removed before the
// namespaces they are in.
func (s *Scene) Namespace(node string) (*Namespace, bool) {
	n, ok := s.spaces[node]
	return n, ok
}

// letGo closes what is open of a node's namespace.
func (s *Scene) letGo(node string) {
	s.spaces[node].close()
	delete(s.spaces, node)
	s.bed.mu.Lock()
	delete(s.bed.namespaces, node)
	s.bed.mu.Unlock()
}

type registered struct {
	order  int
	remove Remover
}

var (
	removersMu sync.RWMutex
	removers   = map[string]registered{
		KindProcess:   {OrderProcess, removeProcesses},
		KindPrograms:  {OrderProcess, removePrograms},
		KindNamespace: {OrderNamespace, removeNamespaces},
		KindFile:      {OrderFile, removeFiles},
	}
)

// RegisterRemover says how a kind of thing is taken away, and when: kinds with a lower order go
// first. Rooms call it when their package is initialised, so that any process that can make a
// thing can also clean up after one that died.
func RegisterRemover(kind string, order int, r Remover) {
	removersMu.Lock()
	defer removersMu.Unlock()
	if _, dup := removers[kind]; dup {
		panic("linux: two removers for " + kind)
	}
	removers[kind] = registered{order, r}
}

func removerOf(kind string) (registered, bool) {
	removersMu.RLock()
	defer removersMu.RUnlock()
	r, ok := removers[kind]
	return r, ok
}

// sweep removes entries, kind by kind. It goes on after an error, but not to a later kind: what
// is left may stand on what couldn't be removed.
func sweep(ctx context.Context, t *Testbed, entries []Entry, sameBoot bool) error {
	byKind := map[string][][]string{}
	var kinds []string
	for _, e := range slices.Backward(entries) {
		if !sameBoot && e.Kind != KindFile && e.Kind != KindNamespace {
			continue // the kernel's objects and the processes went with the last boot
		}
		if _, ok := removerOf(e.Kind); !ok {
			return fmt.Errorf("%s: this rocebed doesn't know how to remove that; use the one that made it", e)
		}
		if byKind[e.Kind] == nil {
			kinds = append(kinds, e.Kind)
		}
		byKind[e.Kind] = append(byKind[e.Kind], e.ID)
	}
	slices.SortStableFunc(kinds, func(a, b string) int {
		ra, _ := removerOf(a)
		rb, _ := removerOf(b)
		return cmp.Compare(ra.order, rb.order)
	})

	s := &Scene{Testbed: t.name, Log: t.log, bed: t}
	var err error
	var opened bool
	s.spaces, opened, err = t.spaces(byKind[KindNamespace])
	if opened {
		defer func() {
			for _, n := range s.spaces {
				n.close()
			}
		}()
	}
	if err != nil {
		return err
	}
	for _, k := range kinds {
		r, _ := removerOf(k)
		start := time.Now()
		if err := r.remove(ctx, s, byKind[k]); err != nil {
			return fmt.Errorf("remove %s: %w", k, err)
		}
		t.log.Debug("removed", "kind", k, "things", len(byKind[k]), "took", time.Since(start))
	}
	return nil
}

// ProcessID is what Own wants for a KindProcess.
func ProcessID(pid int) []string {
	return []string{strconv.Itoa(pid), strconv.FormatUint(startTime(pid), 10)}
}

func removeProcesses(ctx context.Context, s *Scene, ids [][]string) error {
	type victim struct{ pid, fd int }
	var alive []victim
	defer func() {
		for _, v := range alive {
			unix.Close(v.fd)
		}
	}()
	for _, id := range ids {
		if len(id) != 2 || id[1] == "0" {
			continue
		}
		pid, _ := strconv.Atoi(id[0])
		start, _ := strconv.ParseUint(id[1], 10, 64)
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		// With the descriptor in hand the number can't be given to another process any more.
		if startTime(pid) != start {
			unix.Close(fd)
			continue
		}
		alive = append(alive, victim{pid, fd})
		_ = unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0)
	}
	for _, v := range alive {
		if ended(ctx, v.fd, 2*time.Second) {
			continue
		}
		s.Log.Warn("process did not end when asked to; killing it", "pid", v.pid)
		_ = unix.PidfdSendSignal(v.fd, unix.SIGKILL, nil, 0)
		if !ended(context.WithoutCancel(ctx), v.fd, 5*time.Second) {
			return fmt.Errorf("process %d did not end within 5 s of being killed", v.pid)
		}
	}
	return nil
}

// ProgramMark is what a program that is started in a namespace of the testbed has in its
// environment.
func ProgramMark(testbed string) string { return "ROCEBED_TESTBED=" + testbed }

func removePrograms(ctx context.Context, s *Scene, _ [][]string) error {
	ours := map[string]bool{}
	for _, n := range s.spaces {
		ours[fmt.Sprintf("net:[%d]", n.inode)] = true
	}
	mark := []byte(ProgramMark(s.Testbed))
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	var ids [][]string
	for _, dir := range procs {
		ns, err := os.Readlink(dir + "/ns/net")
		if err != nil || !ours[ns] {
			continue
		}
		env, err := os.ReadFile(dir + "/environ")
		if err != nil || !slices.ContainsFunc(bytes.Split(env, []byte{0}), func(e []byte) bool { return bytes.Equal(e, mark) }) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && pid != os.Getpid() {
			ids = append(ids, ProcessID(pid))
		}
	}
	if len(ids) > 0 {
		s.Log.Info("ending programs that still run on the testbed's nodes", "programs", len(ids))
	}
	return removeProcesses(ctx, s, ids)
}

// ended waits until the process of a pidfd is gone.
func ended(ctx context.Context, fd int, limit time.Duration) bool {
	for until := time.Now().Add(limit); ; {
		left := min(time.Until(until), 50*time.Millisecond)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(max(left, 0).Milliseconds()))
		if n > 0 {
			return true
		}
		if err != nil && err != unix.EINTR || time.Now().After(until) || ctx.Err() != nil {
			return false
		}
	}
}

func removeFiles(_ context.Context, _ *Scene, ids [][]string) error {
	for _, id := range ids {
		if len(id) != 1 {
			continue
		}
		if err := os.Remove(id[0]); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
