package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// etc are small files that the guest's programs look for.
var etc = map[string]string{
	// tcpdump gives up root for its own user unless told not to.
	"/etc/passwd":                   "root:x:0:0:root:/root:/bin/bash\ntcpdump:x:100:100::/:/bin/false\nnobody:x:65534:65534:nobody:/:/bin/false\n",
	"/etc/group":                    "root:x:0:\ntcpdump:x:100:\nnogroup:x:65534:\n",
	"/etc/nsswitch.conf":            "passwd: files\ngroup: files\nhosts: files\nprotocols: files\nservices: files\n",
	"/etc/hosts":                    "127.0.0.1 localhost\n::1 localhost\n",
	"/etc/libibverbs.d/rxe.driver":  "driver rxe\n",
	"/root/.bashrc":                 "PS1='guest:\\w\\$ '\nalias ls='ls --color=auto' ll='ls -l'\n",
	"/etc/profile":                  "[ -n \"$BASH\" ] && . /root/.bashrc\n",
	"/usr/share/rocebed/guest-root": "This file system is a rocebed guest's; it lives in memory and ends with it.\n",
}

// writeImage writes the kernel, the base archive and the manifest into dir, synced.
func writeImage(ctx context.Context, o Options, dir string, u *userland, t *tree, m *Manifest) error {
	o.progress("kernel %s: preparing it and its modules", t.release)
	if err := writeKernel(dir, t, m); err != nil {
		return fmt.Errorf("kernel %s: %w", t.release, err)
	}
	staged, err := os.MkdirTemp(dir, "modules-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(staged)
	if m.Kernel.Modules, err = t.stage(ctx, staged); err != nil {
		return err
	}
	o.progress("writing the base archive")
	if err := writeBase(ctx, dir, staged, u, m); err != nil {
		return fmt.Errorf("base archive: %w", err)
	}
	if err := os.RemoveAll(staged); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return writeSynced(filepath.Join(dir, manifestFile), raw)
}

func writeKernel(dir string, t *tree, m *Manifest) error {
	kernel, err := os.ReadFile(t.vmlinuz)
	if err != nil {
		return err
	}
	name := "vmlinuz"
	m.Kernel.Format = "bzImage"
	if elf, err := uncompressed(kernel); err == nil && hasPVH(elf) {
		kernel, name = elf, "vmlinux"
		m.Kernel.Format = "elf"
	}
	sum := sha256.Sum256(kernel)
	m.Boot = Output{File: name, Size: int64(len(kernel)), SHA256: hex.EncodeToString(sum[:])}
	return writeSynced(filepath.Join(dir, name), kernel)
}

func writeBase(ctx context.Context, dir, staged string, u *userland, m *Manifest) error {
	f, err := os.Create(filepath.Join(dir, "base.cpio"))
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	b := &baseWriter{ArchiveWriter: NewArchiveWriter(io.MultiWriter(f, h)), manifest: m}
	err = errors.Join(b.skeleton(), b.userland(ctx, u), b.modules(staged), b.Close(), f.Sync())
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	m.Base = Output{File: "base.cpio", Size: st.Size(), SHA256: hex.EncodeToString(h.Sum(nil))}
	return f.Close()
}

// baseWriter writes the base archive and notes each entry in the manifest.
type baseWriter struct {
	*ArchiveWriter
	manifest *Manifest
}

func (b *baseWriter) link(name, target string) error {
	b.manifest.Entries = append(b.manifest.Entries, Entry{Name: name, Target: target})
	return b.Symlink(name, target)
}

func (b *baseWriter) bytes(name string, perm uint32, content []byte) error {
	sum := sha256.Sum256(content)
	b.manifest.Entries = append(b.manifest.Entries, Entry{Name: name, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])})
	return b.Bytes(name, perm, content)
}

func (b *baseWriter) copy(name, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	st, err := os.Stat(from)
	if err != nil {
		return err
	}
	return b.bytes(name, uint32(st.Mode().Perm())|0o444, content)
}

func (b *baseWriter) skeleton() error {
	var err error
	for _, d := range []string{"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/etc", "/proc", "/sys", "/dev", "/run", "/mnt", "/var"} {
		err = errors.Join(err, b.Dir(d, 0o755))
	}
	err = errors.Join(err, b.Dir("/root", 0o700), b.Dir("/tmp", 0o1777), b.Dir("/x", 0o755))
	for _, d := range []string{"bin", "sbin", "lib", "lib64"} {
		err = errors.Join(err, b.link("/"+d, "usr/"+d))
	}
	err = errors.Join(err,
		b.link("/etc/mtab", "/proc/self/mounts"), b.link("/var/run", "/run"), b.link("/var/tmp", "/tmp"),
		b.CharDev("/dev/console", 0o600, 5, 1), b.CharDev("/dev/null", 0o666, 1, 3))
	names := make([]string, 0, len(etc))
	for name := range etc {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		err = errors.Join(err, b.bytes(name, 0o644, []byte(etc[name])))
	}
	return err
}

func (b *baseWriter) userland(ctx context.Context, u *userland) error {
	hashes := map[string]string{}
	for _, in := range b.manifest.Inputs {
		hashes[in.Path] = in.SHA256
	}
	names := make([]string, 0, len(u.files))
	for name := range u.files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if b.Has(name) {
			continue
		}
		if err := b.copy(name, u.files[name]); err != nil {
			return err
		}
		if e := b.manifest.Entries[len(b.manifest.Entries)-1]; e.SHA256 != hashes[u.files[name]] {
			return fmt.Errorf("%s changed while the image was built", u.files[name])
		}
	}
	if cache, err := os.ReadFile("/etc/ld.so.cache"); err == nil {
		if err := b.bytes("/etc/ld.so.cache", 0o644, cache); err != nil {
			return err
		}
	}
	return b.applets(u)
}

// applets gives busybox the names that no program of the machine has taken, and kmod
// its own: the kernel calls /sbin/modprobe to load qdiscs on first use.
func (b *baseWriter) applets(u *userland) error {
	var err error
	kmod := GuestPath(lookProgram("kmod"))
	for _, name := range []string{"modprobe", "insmod", "rmmod", "lsmod", "depmod", "modinfo"} {
		if !b.Has("/usr/sbin/" + name) {
			err = errors.Join(err, b.link("/usr/sbin/"+name, kmod))
		}
	}
	busybox := GuestPath(lookProgram("busybox"))
	for _, name := range u.applets {
		if !b.Has("/usr/bin/"+name) && !b.Has("/usr/sbin/"+name) && !strings.Contains(name, "/") {
			err = errors.Join(err, b.link("/usr/bin/"+name, busybox))
		}
	}
	return err
}

func (b *baseWriter) modules(staged string) error {
	return filepath.WalkDir(staged, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(staged, path)
		if err != nil {
			return err
		}
		return b.copy("/usr/"+rel, path)
	})
}
