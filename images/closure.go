package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

var lddPath = regexp.MustCompile(`(?m)(?:^\s*|=> )(/\S+) \(0x`)
var lddMissing = regexp.MustCompile(`(?m)^\s*(\S+) => not found`)

// Libraries returns the shared libraries (and the dynamic loader) that the program at
// path loads at start, as the machine's own loader finds them. A static program has
// none. The paths come as the loader names them, not resolved.
func Libraries(ctx context.Context, path string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "ldd", path)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	said := string(out) + errOut.String()
	if strings.Contains(said, "not a dynamic executable") || strings.Contains(said, "statically linked") {
		return nil, nil
	}
	if missing := lddMissing.FindAllStringSubmatch(said, -1); missing != nil {
		return nil, fmt.Errorf("libraries of %s: the loader does not find %s", path, missing[0][1])
	}
	if err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, fmt.Errorf("libraries of %s: no ldd on this machine (Debian package libc-bin)", path)
		}
		return nil, fmt.Errorf("libraries of %s: ldd: %w: %s", path, err, strings.TrimSpace(said))
	}
	var libs []string
	for _, m := range lddPath.FindAllStringSubmatch(said, -1) {
		libs = append(libs, m[1])
	}
	return libs, nil
}

// GuestPath is where a file of the machine lies in the guest: the same path, with the
// top-level bin, sbin and lib folders merged into /usr as Linux systems have them today.
func GuestPath(path string) string {
	for _, top := range []string{"/bin/", "/sbin/", "/lib/", "/lib64/"} {
		if strings.HasPrefix(path, top) {
			return "/usr" + path
		}
	}
	return path
}
