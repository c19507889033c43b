package images

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// output runs a tool of the machine and returns what it printed.
func output(ctx context.Context, tool string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	return finish(cmd)
}

func finish(cmd *exec.Cmd) (string, error) {
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(errOut.String())
		if lines := strings.Split(said, "\n"); len(lines) > 4 {
			said = strings.Join(lines[len(lines)-4:], "\n")
		}
		if errors.Is(err, exec.ErrNotFound) {
			return "", fmt.Errorf("%s is not on this machine", filepath.Base(cmd.Path))
		}
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, said)
	}
	return out.String(), nil
}

// lookProgram finds a program in PATH or in the folders for administrators; where it
// is nowhere, the name comes back as it was.
func lookProgram(name string) string {
	if p, err := exec.LookPath(name); err == nil {
		if abs, err := filepath.Abs(p); err == nil {
			return abs
		}
	}
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
		p := filepath.Join(dir, name)
		if st, err := os.Stat(p); err == nil && st.Mode()&0o111 != 0 {
			return p
		}
	}
	return name
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// packageOf asks dpkg which package a file is of; where it can't say, both are empty.
func packageOf(ctx context.Context, path string) (name, version string) {
	for _, p := range []string{path, strings.TrimPrefix(path, "/usr")} {
		out, err := output(ctx, "dpkg-query", "--search", p)
		if err != nil {
			continue
		}
		name, _, ok := strings.Cut(out, ": ")
		if !ok || strings.ContainsAny(name, ", ") {
			continue
		}
		version, err := output(ctx, "dpkg-query", "--show", "--showformat=${Version}", name)
		if err == nil {
			return name, version
		}
	}
	return "", ""
}
