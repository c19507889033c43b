package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
)

// Hash is the SHA-256 of a data folder: of one line "sum  path" per file, sorted by path, as
// sha256sum prints them. Equal hashes mean equal paths and contents.
func Hash(dir string) (string, error) {
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, rerr := filepath.Rel(dir, path)
			paths = append(paths, filepath.ToSlash(rel))
			return rerr
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("hash %s: %w", dir, err)
	}
	sort.Strings(paths)
	all := sha256.New()
	for _, p := range paths {
		sum, err := hashFile(filepath.Join(dir, filepath.FromSlash(p)))
		if err != nil {
			return "", fmt.Errorf("hash %s: %w", dir, err)
		}
		fmt.Fprintf(all, "%s  %s\n", sum, p)
	}
	return hex.EncodeToString(all.Sum(nil)), nil
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
