package guest

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// pack writes what lies below dir (or the file dir itself) as a tar stream, following
// links. Sockets, pipes and devices are left out.
func pack(w io.Writer, dir string) error {
	tw := tar.NewWriter(w)
	if err := packInto(tw, dir, "."); err != nil {
		return err
	}
	return tw.Close()
}

func packInto(tw *tar.Writer, from, name string) error {
	return walk(from, name, 0, func(from, name string, st fs.FileInfo) error {
		h := &tar.Header{Name: name, Mode: int64(st.Mode().Perm()), Format: tar.FormatPAX, ModTime: st.ModTime()}
		if st.IsDir() {
			h.Typeflag, h.Name = tar.TypeDir, name+"/"
			return tw.WriteHeader(h)
		}
		h.Typeflag, h.Size = tar.TypeReg, st.Size()
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		f, err := os.Open(from)
		if err != nil {
			return err
		}
		defer f.Close()
		// A file that grows meanwhile (a log) is taken as long as it was.
		n, err := io.Copy(tw, io.LimitReader(f, st.Size()))
		if err == nil && n < st.Size() {
			err = fmt.Errorf("%s shrank while it was read", from)
		}
		return err
	})
}

// maxDepth ends a walk that links have made endless.
const maxDepth = 64

// walk visits from and all below it, following links, folders before their content,
// in the order of names.
func walk(from, name string, depth int, visit func(from, name string, st fs.FileInfo) error) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: more than %d folders deep (a link to its own parent?)", from, maxDepth)
	}
	st, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		if !st.Mode().IsRegular() {
			return nil
		}
		return visit(from, name, st)
	}
	if err := visit(from, name, st); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := walk(filepath.Join(from, e.Name()), path.Join(name, e.Name()), depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}

// unpack reads a tar stream into dir, which is made where it is missing. The stream is
// not trusted: an entry that leaves dir, by its name or through a link that lies there,
// is an error, and so is anything but a file or a folder.
func unpack(r io.Reader, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpack into %s: %w", dir, err)
		}
		if err := unpackEntry(root, h, tr); err != nil {
			return fmt.Errorf("unpack into %s: %q: %w", dir, h.Name, err)
		}
	}
}

func unpackEntry(root *os.Root, h *tar.Header, r io.Reader) error {
	name := path.Clean(h.Name)
	if !filepath.IsLocal(name) || strings.Contains(h.Name, "..") && !filepath.IsLocal(h.Name) {
		return errors.New("refused: the name leaves the folder")
	}
	perm := fs.FileMode(h.Mode).Perm()
	switch h.Typeflag {
	case tar.TypeDir:
		if name == "." {
			return nil
		}
		return root.MkdirAll(name, perm|0o700)
	case tar.TypeReg:
		if parent := path.Dir(name); parent != "." {
			if err := root.MkdirAll(parent, 0o755); err != nil {
				return err
			}
		}
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		return errors.Join(err, f.Close())
	}
	return fmt.Errorf("refused: neither a file nor a folder (type %q)", h.Typeflag)
}
