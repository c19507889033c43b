//go:build linux

package linux

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Entry is one thing that a testbed owns: what kind of thing, and what tells it from every
// other. The kind's [Remover] knows what the identity means.
type Entry struct {
	Kind string   `json:"kind"`
	ID   []string `json:"id"`
}

func (e Entry) String() string { return e.Kind + " " + strings.Join(e.ID, " ") }

func (e Entry) equal(f Entry) bool { return e.Kind == f.Kind && slices.Equal(e.ID, f.ID) }

// line is a journal line. The first holds the boot that the rest is true of.
type line struct {
	Boot    string `json:"boot,omitempty"`
	Testbed string `json:"testbed,omitempty"`
	Op      string `json:"op,omitempty"` // own, disown
	Entry
}

// A journal is the list of what a testbed owns, written before each thing is made. It is not
// synced: what it lists doesn't survive a power cut either.
type journal struct {
	mu      sync.Mutex
	file    *os.File
	entries []Entry
}

func journalPath(dir string) string { return filepath.Join(dir, "journal") }

// readJournal reads what a testbed owned. A journal of an earlier boot owns nothing but files
// and empty names: the kernel's objects went with the kernel. A last line without an end was
// being written when its writer died, so that what it announces was never made.
func readJournal(dir string) (entries []Entry, sameBoot bool, err error) {
	b, err := os.ReadFile(journalPath(dir))
	if os.IsNotExist(err) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	sameBoot = true
	for n, text := 1, b; len(text) > 0; n++ {
		raw, rest, _ := bytes.Cut(text, []byte("\n"))
		text = rest
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			return nil, false, fmt.Errorf("%s:%d: %w", journalPath(dir), n, err)
		}
		switch {
		case l.Boot != "":
			sameBoot = l.Boot == bootID()
		case l.Op == "own":
			entries = append(entries, l.Entry)
		case l.Op == "disown":
			entries = without(entries, l.Entry)
		}
	}
	return entries, sameBoot, nil
}

// startJournal begins an empty journal in place of the old one.
func startJournal(dir, testbed string) (*journal, error) {
	f, err := os.OpenFile(journalPath(dir), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{file: f}
	return j, j.write(line{Boot: bootID(), Testbed: testbed})
}

func (j *journal) write(l line) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

func (j *journal) own(es ...Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var buf []byte
	for _, e := range es {
		b, err := json.Marshal(line{Op: "own", Entry: e})
		if err != nil {
			return err
		}
		buf = append(append(buf, b...), '\n')
	}
	if _, err := j.file.Write(buf); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.entries = append(j.entries, es...)
	return nil
}

func (j *journal) disown(e Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = without(j.entries, e)
	return j.write(line{Op: "disown", Entry: e})
}

func (j *journal) list() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}

// without removes the newest entry that equals e.
func without(es []Entry, e Entry) []Entry {
	for i := len(es) - 1; i >= 0; i-- {
		if es[i].equal(e) {
			return slices.Delete(es, i, i+1)
		}
	}
	return es
}

var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
})
