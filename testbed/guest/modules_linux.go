package guest

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// loadModules loads modules and what they depend on, in the order of modules.dep. It
// calls the kernel itself: starting modprobe for each costs an emulated processor more
// than the loading.
func loadModules(names []string) error {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return err
	}
	dir := filepath.Join("/usr/lib/modules", unix.ByteSliceToString(uts.Release[:]))
	raw, err := os.ReadFile(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return err
	}
	files, deps := map[string]string{}, map[string][]string{}
	for line := range strings.Lines(string(raw)) {
		file, rest, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(path.Base(file), ".ko")
		files[strings.ReplaceAll(name, "-", "_")] = file
		deps[file] = strings.Fields(rest)
	}
	for _, name := range names {
		file, ok := files[name]
		if !ok {
			continue // built in: the image was checked to have it one way or the other
		}
		// modules.dep lists what is needed first last.
		for i := len(deps[file]) - 1; i >= 0; i-- {
			if err := loadModule(filepath.Join(dir, deps[file][i])); err != nil {
				return err
			}
		}
		if err := loadModule(filepath.Join(dir, file)); err != nil {
			return err
		}
	}
	return nil
}

func loadModule(file string) error {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("module %s: %w", file, err)
	}
	defer unix.Close(fd)
	if err := unix.FinitModule(fd, "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("module %s: %w", file, err)
	}
	return nil
}
