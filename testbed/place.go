package testbed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rocebed/rocebed/testbed/record"
)

// place is the folder that a guest's record goes to. It is made, and written to, before the
// guest boots: minutes later there would be a record and nowhere to put it.
type place struct {
	dir    string
	made   bool // dir was not there
	coming string
}

// reserve takes a folder that is empty or doesn't exist. It may be a link to a folder or a
// mount point. Release it in the end.
func reserve(dir string) (*place, error) {
	if err := record.Vacant(dir); err != nil {
		return nil, err
	}
	p := &place{dir: dir, coming: filepath.Join(dir, ".coming")}
	_, err := os.Stat(dir)
	p.made = errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("record: %w (choose another --out)", err)
	}
	err = os.Mkdir(p.coming, 0o755)
	switch {
	case errors.Is(err, fs.ErrExist): // another run was faster
		return nil, fmt.Errorf("record %s: %w", dir, record.ErrExists)
	case err != nil:
		p.release()
		return nil, fmt.Errorf("record: %w (choose another --out)", err)
	}
	return p, nil
}

// take has a record fetched, completes its manifest and moves it into place. The manifest, which
// says that the record is complete, goes last.
func (p *place) take(fetch func(dir string) error, complete func(*record.Manifest)) error {
	if err := fetch(p.coming); err != nil {
		return fmt.Errorf("record %s: %w", p.dir, err)
	}
	if err := record.Amend(p.coming, complete); err != nil {
		return err
	}
	entries, err := os.ReadDir(p.coming)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	names := []string{}
	for _, e := range entries {
		if e.Name() != record.ManifestFile {
			names = append(names, e.Name())
		}
	}
	for _, name := range append(names, record.ManifestFile) {
		if err := os.Rename(filepath.Join(p.coming, name), filepath.Join(p.dir, name)); err != nil {
			return fmt.Errorf("record: %w", err)
		}
	}
	return nil
}

// again empties the place for another record, where one did not come whole.
func (p *place) again() error {
	entries, err := os.ReadDir(p.dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(p.dir, e.Name())))
	}
	if err = errors.Join(err, os.Mkdir(p.coming, 0o755)); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// release removes what was made for a record that didn't come.
func (p *place) release() {
	_ = os.RemoveAll(p.coming)
	if p.made {
		_ = os.Remove(p.dir) // refused where there is a record now
	}
}
