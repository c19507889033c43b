package images

import (
	"fmt"
	"io"
	"path"
	"strings"
)

// Mode bits of a cpio entry, as in stat(2).
const (
	modeDir     = 0o040000
	modeRegular = 0o100000
	modeSymlink = 0o120000
	modeCharDev = 0o020000
)

// ArchiveWriter writes a "newc" cpio archive, the format that Linux unpacks as an
// initramfs (Documentation/driver-api/early-userspace/buffer-format.rst in the kernel
// tree). Several archives may follow each other in one initramfs. All entries belong
// to root and carry no time, so equal content gives equal bytes.
//
// Parent folders are made on first use with mode 0755; entries may come in any order
// otherwise. Paths are slash-separated; a leading slash is dropped.
type ArchiveWriter struct {
	w     io.Writer
	n     int64 // bytes written
	inode uint32
	made  map[string]bool
	err   error
}

// NewArchiveWriter returns a writer of a fresh archive onto w. Call Close at the end.
func NewArchiveWriter(w io.Writer) *ArchiveWriter {
	return &ArchiveWriter{w: w, made: map[string]bool{}}
}

// Dir adds a folder unless the archive has it already.
func (a *ArchiveWriter) Dir(name string, perm uint32) error {
	name, err := cleanName(name)
	if err != nil {
		return err
	}
	return a.dir(name, perm)
}

// Symlink adds a symbolic link that points at target.
func (a *ArchiveWriter) Symlink(name, target string) error {
	return a.entry(name, modeSymlink|0o777, 0, 0, int64(len(target)), strings.NewReader(target))
}

// CharDev adds a character device node.
func (a *ArchiveWriter) CharDev(name string, perm, major, minor uint32) error {
	return a.entry(name, modeCharDev|perm, major, minor, 0, nil)
}

// File adds a regular file with exactly size bytes of r. The format holds sizes below
// 4 GiB.
func (a *ArchiveWriter) File(name string, perm uint32, size int64, r io.Reader) error {
	return a.entry(name, modeRegular|perm, 0, 0, size, r)
}

// Bytes adds a regular file with the given content.
func (a *ArchiveWriter) Bytes(name string, perm uint32, content []byte) error {
	return a.File(name, perm, int64(len(content)), strings.NewReader(string(content)))
}

// Has tells whether the archive holds an entry of that name.
func (a *ArchiveWriter) Has(name string) bool {
	name, err := cleanName(name)
	return err == nil && a.made[name]
}

// Close writes the trailer and pads the archive to 512 bytes. It doesn't close the
// underlying writer.
func (a *ArchiveWriter) Close() error {
	a.header("TRAILER!!!", 0, 0, 0, 0, 1)
	a.pad(512)
	return a.err
}

func (a *ArchiveWriter) dir(name string, perm uint32) error {
	if name == "." || a.made[name] {
		return a.err
	}
	if err := a.dir(path.Dir(name), 0o755); err != nil {
		return err
	}
	a.made[name] = true
	a.header(name, modeDir|perm, 0, 0, 0, 2)
	return a.err
}

func (a *ArchiveWriter) entry(name string, mode, major, minor uint32, size int64, r io.Reader) error {
	name, err := cleanName(name)
	if err != nil {
		return err
	}
	if name == "." {
		return fmt.Errorf("archive entry: empty name")
	}
	if a.made[name] {
		return fmt.Errorf("archive entry %s: added twice", name)
	}
	if size < 0 || size > 0xffffffff {
		return fmt.Errorf("archive entry %s: %d bytes do not fit the newc format (below 4 GiB)", name, size)
	}
	if err := a.dir(path.Dir(name), 0o755); err != nil {
		return err
	}
	a.made[name] = true
	a.header(name, mode, major, minor, size, 1)
	if r != nil && a.err == nil {
		n, err := io.Copy(a.w, io.LimitReader(r, size))
		a.n += n
		switch {
		case err != nil:
			a.err = fmt.Errorf("archive entry %s: %w", name, err)
		case n != size:
			a.err = fmt.Errorf("archive entry %s: %d bytes were promised, %d came (did the file change?)", name, size, n)
		}
	}
	a.pad(4)
	return a.err
}

func (a *ArchiveWriter) header(name string, mode, major, minor uint32, size int64, links uint32) {
	a.inode++
	// magic, inode, mode, uid, gid, links, mtime, size, device (2), special device (2), name length, check
	h := fmt.Sprintf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00",
		a.inode, mode, 0, 0, links, 0, uint32(size), 0, 0, major, minor, len(name)+1, 0, name)
	a.write(h)
	a.pad(4)
}

func (a *ArchiveWriter) pad(to int64) {
	if rest := a.n % to; rest != 0 {
		a.write(strings.Repeat("\x00", int(to-rest)))
	}
}

func (a *ArchiveWriter) write(s string) {
	if a.err != nil {
		return
	}
	n, err := io.WriteString(a.w, s)
	a.n += int64(n)
	a.err = err
}

func cleanName(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("archive entry %q: name holds a NUL", name)
	}
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return "", fmt.Errorf("archive entry %q: name leaves the archive", name)
		}
	}
	return path.Clean(strings.TrimLeft(name, "/")), nil
}
