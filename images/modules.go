package images

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// moduleSet is what a kernel's module folder offers.
type moduleSet struct {
	dir     string
	path    map[string]string   // module name → path relative to dir
	deps    map[string][]string // path → the paths it depends on
	builtin map[string]bool
}

// readModules reads modules.dep and modules.builtin of a module folder.
func readModules(dir string) (*moduleSet, error) {
	s := &moduleSet{dir: dir, path: map[string]string{}, deps: map[string][]string{}, builtin: map[string]bool{}}
	raw, err := os.ReadFile(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return nil, fmt.Errorf("kernel modules: %w (run depmod)", err)
	}
	for line := range strings.Lines(string(raw)) {
		file, deps, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		s.path[moduleName(file)] = file
		s.deps[file] = strings.Fields(deps)
	}
	if raw, err = os.ReadFile(filepath.Join(dir, "modules.builtin")); err == nil {
		for line := range strings.Lines(string(raw)) {
			s.builtin[moduleName(strings.TrimSpace(line))] = true
		}
	}
	return s, nil
}

// moduleName is the name of the module in a file: kernel names use underscores.
func moduleName(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// pick returns the files, relative to the module folder, of the modules wanted and of
// everything they depend on, sorted.
func (s *moduleSet) pick(wanted, required []string) ([]string, error) {
	files := map[string]bool{}
	add := func(file string) {
		files[file] = true
		for _, d := range s.deps[file] {
			files[d] = true
		}
	}
	for _, w := range wanted {
		if !strings.Contains(w, "/") {
			if file, ok := s.path[w]; ok {
				add(file)
			}
			continue
		}
		for file := range s.deps {
			if ok, err := path.Match(w, strings.TrimSuffix(path.Join(path.Dir(file), moduleName(file)), ".ko")); err != nil {
				return nil, err
			} else if ok {
				add(file)
			}
		}
	}
	for _, r := range required {
		if !s.builtin[r] && !files[s.path[r]] {
			return nil, fmt.Errorf("kernel modules: %s has no %s", s.dir, r)
		}
	}
	sorted := make([]string, 0, len(files))
	for f := range files {
		sorted = append(sorted, f)
	}
	sort.Strings(sorted)
	return sorted, nil
}

// stage puts the picked modules, decompressed, under root/lib/modules/RELEASE with
// their indexes. It returns the modules' names.
func (t *tree) stage(ctx context.Context, root string) ([]string, error) {
	set, err := readModules(t.modulesDir())
	if err != nil {
		return nil, err
	}
	files, err := set.pick(modules, required)
	if err != nil {
		return nil, err
	}
	into := filepath.Join(root, "lib/modules", t.release)
	var names []string
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := stageModule(filepath.Join(set.dir, file), filepath.Join(into, path.Dir(file))); err != nil {
			return nil, fmt.Errorf("kernel module %s: %w", file, err)
		}
		names = append(names, moduleName(file))
	}
	for _, index := range []string{"modules.builtin", "modules.builtin.modinfo", "modules.order"} {
		raw, err := os.ReadFile(filepath.Join(set.dir, index))
		if os.IsNotExist(err) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(into, index), raw, 0o644)
		}
		if err != nil {
			return nil, err
		}
	}
	sort.Strings(names)
	return names, depmod(ctx, root, t.release)
}

func stageModule(from, into string) error {
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	name, suffix, _ := strings.Cut(filepath.Base(from), ".ko")
	if suffix != "" {
		r, err := decompressor(raw)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if _, err := io.Copy(&out, r); err != nil {
			return err
		}
		raw = out.Bytes()
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(into, name+".ko"), raw, 0o644)
}

func depmod(ctx context.Context, root, release string) error {
	// Folders for administrators are often missing from a user's PATH.
	_, err := output(ctx, lookProgram("depmod"), "-b", root, release)
	return err
}
