package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// userland is what the machine gives to the guest: its files by their path in the guest.
type userland struct {
	programs []Program
	absent   []string
	files    map[string]string // path in the guest → path on the machine, resolved
	applets  []string          // names that busybox answers to
}

// collect finds every program wanted, what it loads, and the files that programs open
// by themselves. All that is missing is reported at once, with the packages to install.
func collect(ctx context.Context) (*userland, error) {
	u := &userland{files: map[string]string{}}
	var missing []string
	for _, w := range programs {
		path := lookProgram(w.name)
		if !filepath.IsAbs(path) {
			if w.optional {
				u.absent = append(u.absent, w.name)
			} else {
				missing = append(missing, fmt.Sprintf("%s (Debian package %s)", w.name, w.pkg))
			}
			continue
		}
		p := Program{Name: w.name, Path: path}
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, fmt.Errorf("guest program %s: %w", w.name, err)
		}
		if p.SHA256, err = hashFile(resolved); err != nil {
			return nil, fmt.Errorf("guest program %s: %w", w.name, err)
		}
		p.Package, p.Version = packageOf(ctx, resolved)
		u.programs = append(u.programs, p)
		if err := u.add(ctx, path); err != nil {
			return nil, err
		}
		// Wherever the machine keeps it, the guest's PATH finds it by its name.
		if dir := filepath.Dir(GuestPath(path)); dir != "/usr/bin" && dir != "/usr/sbin" {
			u.files["/usr/bin/"+w.name] = resolved
		}
	}
	for _, l := range loaded {
		found := false
		for _, pattern := range l.patterns {
			matches, err := filepath.Glob(pattern)
			if err != nil {
				return nil, err
			}
			for _, m := range matches {
				if st, err := os.Stat(m); err != nil || !st.Mode().IsRegular() {
					continue
				}
				found = true
				if err := u.add(ctx, m); err != nil {
					return nil, err
				}
			}
		}
		if !found && !l.optional {
			missing = append(missing, fmt.Sprintf("%s (Debian package %s)", l.patterns[0], l.pkg))
		}
	}
	if missing != nil {
		return nil, fmt.Errorf("the guest needs from this machine: %s; `make setup` installs them", strings.Join(missing, ", "))
	}
	busybox := u.files[GuestPath(lookProgram("busybox"))]
	if libs, err := Libraries(ctx, busybox); err != nil {
		return nil, err
	} else if libs != nil {
		return nil, errors.New("the guest needs a static busybox (Debian package busybox-static)")
	}
	list, err := output(ctx, busybox, "--list")
	if err != nil {
		return nil, err
	}
	u.applets = strings.Fields(list)
	return u, nil
}

// add takes a file and the libraries it loads.
func (u *userland) add(ctx context.Context, path string) error {
	if _, ok := u.files[GuestPath(path)]; ok {
		return nil
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	u.files[GuestPath(path)] = resolved
	if !isELF(resolved) {
		return nil
	}
	libs, err := Libraries(ctx, resolved)
	if err != nil {
		return err
	}
	for _, lib := range libs {
		if resolved, err = filepath.EvalSymlinks(lib); err != nil {
			return err
		}
		u.files[GuestPath(lib)] = resolved
	}
	return nil
}

func isELF(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	magic := make([]byte, 4)
	_, err = f.Read(magic)
	return err == nil && string(magic) == "\x7fELF"
}

// inputs are the machine's files that the userland was made of, with their hashes.
func (u *userland) inputs() ([]Input, error) {
	seen := map[string]bool{}
	for _, path := range u.files {
		seen[path] = true
	}
	return statInputs(seen)
}

func statInputs(paths map[string]bool) ([]Input, error) {
	var inputs []Input
	for path := range paths {
		st, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		sum, err := hashFile(path)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, Input{Path: path, Size: st.Size(), MTime: st.ModTime().UnixNano(), SHA256: sum})
	}
	sort.Slice(inputs, func(i, j int) bool { return inputs[i].Path < inputs[j].Path })
	return inputs, nil
}
