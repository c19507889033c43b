//go:build linux

package linux

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// Testbed is the right to make things on this machine under a name, and the duty to take them
// away. One process holds it.
type Testbed struct {
	name    string
	dir     string
	lock    *os.File
	journal *journal
	home    home
	netns   *os.File // says that names of ours are bound in /run/netns
	log     *slog.Logger

	mu         sync.Mutex
	namespaces map[string]*Namespace // by node
	closed     bool                  // no more is made

	closing sync.Mutex
	gone    bool // nothing is held any more; guarded by closing
}

// Acquire takes the testbed of that name for this process, and removes what an earlier holder
// left when it died. It returns a [*HeldError] when a living process has it.
func Acquire(ctx context.Context, name string) (*Testbed, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	f, err := lock(name)
	if err != nil {
		return nil, err
	}
	t := &Testbed{
		name: name, dir: StateDir(name), lock: f,
		log:        slog.Default().With("testbed", name),
		namespaces: map[string]*Namespace{},
	}
	if t.home, err = openHome(); err != nil {
		unlock(f)
		return nil, err
	}
	if err := t.sweepDead(ctx); err != nil {
		t.letGo()
		return nil, fmt.Errorf("testbed %s: remove what an earlier holder left: %w", name, err)
	}
	if t.journal, err = startJournal(t.dir, name); err != nil {
		t.letGo()
		return nil, fmt.Errorf("testbed %s: %w", name, err)
	}
	return t, nil
}

// Name is the testbed's name.
func (t *Testbed) Name() string { return t.name }

// Dir is the testbed's folder, root's alone. What is put there goes when the testbed closes.
func (t *Testbed) Dir() string { return t.dir }

// SetLog chooses where the testbed says what it does; the default is slog.Default.
func (t *Testbed) SetLog(l *slog.Logger) { t.log = l.With("testbed", t.name) }

// Own notes that the testbed is about to make something, so that it is removed when the testbed
// closes or after its holder died. Call it before making the thing: removing what isn't there is
// no error. The kind must have a remover ([RegisterRemover]).
func (t *Testbed) Own(kind string, id ...string) error {
	if _, ok := removerOf(kind); !ok {
		return fmt.Errorf("testbed %s: own %s: nobody knows how to remove that kind", t.name, kind)
	}
	if t.journal == nil {
		return fmt.Errorf("testbed %s is closed", t.name)
	}
	return t.journal.own(Entry{Kind: kind, ID: id})
}

// Disown notes that something the testbed owned is gone.
func (t *Testbed) Disown(kind string, id ...string) error {
	if t.journal == nil {
		return fmt.Errorf("testbed %s is closed", t.name)
	}
	return t.journal.disown(Entry{Kind: kind, ID: id})
}

// Owned lists what the testbed owns, oldest first.
func (t *Testbed) Owned() []Entry { return t.journal.list() }

// Close takes away everything that the testbed owns, in the order of the kinds' removers, and
// gives up the name. When something can't be removed the error says what, the testbed stays
// held, and Close may be called again; when this process ends instead, the next Acquire or Clean
// tries again. Closing a closed testbed is no error.
func (t *Testbed) Close(ctx context.Context) error {
	t.closing.Lock()
	defer t.closing.Unlock()
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	if t.gone {
		return nil
	}
	err := sweep(ctx, t, t.journal.list(), true)
	if err == nil {
		err = t.forget()
	}
	if err != nil {
		return fmt.Errorf("testbed %s: take down: %w", t.name, err)
	}
	t.gone = true
	t.letGo()
	restoreNetnsDir()
	return nil
}

// Abandon lets go of the testbed and leaves everything where it is, as if the process had died.
// It is for tests of what comes after.
func (t *Testbed) Abandon() {
	t.closing.Lock()
	defer t.closing.Unlock()
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.gone = true
	t.letGo()
}

// sweepDead removes what the journal of a dead holder lists.
func (t *Testbed) sweepDead(ctx context.Context) error {
	entries, sameBoot, err := readJournal(t.dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		t.log.Info("removing what an earlier holder left", "things", len(entries))
	}
	if err := sweep(ctx, t, entries, sameBoot); err != nil {
		return err
	}
	return t.emptyDir()
}

// emptyDir removes all files of a dead holder but the lock.
func (t *Testbed) emptyDir() error {
	files, err := os.ReadDir(t.dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Name() != "lock" {
			if err := os.RemoveAll(filepath.Join(t.dir, f.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget removes the testbed's folder, the lock last; whoever waits for the lock looks again.
func (t *Testbed) forget() error {
	if err := t.emptyDir(); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(t.dir, "lock")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Remove(t.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	_ = os.Remove(StateRoot) // succeeds for the last testbed only
	return nil
}

// letGo closes every descriptor that the testbed holds; the lock goes with the last of them.
func (t *Testbed) letGo() {
	t.mu.Lock()
	for _, n := range t.namespaces {
		n.close()
	}
	clear(t.namespaces)
	t.mu.Unlock()
	if t.journal != nil {
		t.journal.file.Close()
	}
	t.home.close()
	if t.netns != nil {
		t.netns.Close()
	}
	unlock(t.lock)
}
