package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Claim makes the folder that a record goes to when nobody said where: base, and where that is taken base-2 and so on. The folder is made, not
// looked for, so that two that claim at the same moment get two. Unclaim it where nothing came of it.
func Claim(base string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(base), 0o755); err != nil {
		return "", fmt.Errorf("record %s: %w (choose another --out)", base, err)
	}
	for dir, n := base, 2; ; dir, n = fmt.Sprintf("%s-%d", base, n), n+1 {
		switch err := os.Mkdir(dir, 0o755); {
		case err == nil:
			return dir, nil
		case !errors.Is(err, fs.ErrExist):
			return "", fmt.Errorf("record %s: %w (choose another --out)", dir, err)
		}
	}
}

// Unclaim removes a folder that was claimed and is still empty.
func Unclaim(dir string) { _ = os.Remove(dir) }
