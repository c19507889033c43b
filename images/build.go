package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Options says how to build.
type Options struct {
	// CacheDir holds images and kernels; empty means DefaultCacheDir.
	CacheDir string
	// Refresh looks for a newer kernel even though the cache has a good image.
	Refresh bool
	// Progress, where set, is told each step as it begins, in a few words.
	Progress func(step string)
}

func (o Options) progress(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

func (o *Options) settle() error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("guest image: made on linux/amd64 only, this is %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	if o.CacheDir == "" {
		dir, err := DefaultCacheDir()
		if err != nil {
			return err
		}
		o.CacheDir = dir
	}
	return nil
}

// Build returns the image for this machine as it is now: the cached one where its
// inputs are unchanged (a few milliseconds), else a new one (a minute with downloads,
// seconds without). Builds at the same time wait for each other. Errors name the
// packages that are missing.
func Build(ctx context.Context, o Options) (*Image, error) {
	if err := o.settle(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.CacheDir, 0o755); err != nil {
		return nil, fmt.Errorf("guest image: the cache folder can't be made: %w (--cache, or $%s, names another)", err, cacheEnv)
	}
	if !o.Refresh {
		if img := current(o.CacheDir); img != nil {
			return img, nil
		}
	}
	unlock, err := lock(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("guest image: %w", err)
	}
	defer unlock()
	if !o.Refresh {
		if img := current(o.CacheDir); img != nil {
			return img, nil
		}
	}
	if err := sweep(o.CacheDir); err != nil {
		return nil, fmt.Errorf("guest image: %w", err)
	}
	img, err := build(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("guest image: %w", err)
	}
	return img, nil
}

// Find returns the cached image that fits this machine, or nil when one must be built.
func Find(o Options) (*Image, error) {
	if err := o.settle(); err != nil {
		return nil, err
	}
	return current(o.CacheDir), nil
}

// current is the newest cached image whose inputs are as they were. It compares sizes
// and times, not contents: it runs before every boot.
func current(cache string) *Image {
	for _, img := range kept(cache) {
		if img.fresh() {
			return img
		}
	}
	return nil
}

func (i *Image) fresh() bool {
	m := &i.Manifest
	if m.Recipe != recipe() {
		return false
	}
	for _, in := range m.Inputs {
		st, err := os.Stat(in.Path)
		if err != nil || st.Size() != in.Size || st.ModTime().UnixNano() != in.MTime {
			return false
		}
	}
	for _, p := range m.Programs {
		if lookProgram(p.Name) != p.Path {
			return false
		}
	}
	for _, name := range m.Absent {
		if filepath.IsAbs(lookProgram(name)) {
			return false
		}
	}
	own := machineKernel("/")
	return (own != nil) == (m.Kernel.Source == "machine") && (own == nil || own.release == m.Kernel.Release)
}

// recipe identifies what this rocebed wants in an image.
func recipe() string {
	h := sha256.New()
	fmt.Fprintln(h, layout, programs, loaded, modules, required, etc)
	return hex.EncodeToString(h.Sum(nil))
}

func build(ctx context.Context, o Options) (*Image, error) {
	o.progress("collecting the userland")
	u, err := collect(ctx)
	if err != nil {
		return nil, err
	}
	t, err := findKernel(ctx, o)
	if err != nil {
		return nil, err
	}
	m := Manifest{
		Layout: layout, Recipe: recipe(), Built: time.Now().UTC(), Machine: machineName(),
		Programs: u.programs, Absent: u.absent,
		Kernel: Kernel{Release: t.release, Source: t.source, Debs: t.debs},
	}
	if m.Inputs, err = u.inputs(); err != nil {
		return nil, err
	}
	if t.source == "machine" {
		own, err := statInputs(map[string]bool{t.vmlinuz: true, filepath.Join(t.modulesDir(), "modules.dep"): true})
		if err != nil {
			return nil, err
		}
		m.Inputs = append(m.Inputs, own...)
	}
	m.Key = m.key()
	home := filepath.Join(o.CacheDir, "images", m.Key[:16])
	if img, err := open(home); err == nil && img.Manifest.Key == m.Key && img.Verify() == nil {
		return img.touch(m)
	}
	stage, err := os.MkdirTemp(o.CacheDir, tmpPrefix)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(stage)
	if err := os.Chmod(stage, 0o755); err != nil {
		return nil, err
	}
	if err := writeImage(ctx, o, stage, u, t, &m); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(home); err != nil {
		return nil, err
	}
	if err := os.Rename(stage, home); err != nil {
		return nil, err
	}
	if err := prune(o.CacheDir); err != nil {
		return nil, err
	}
	o.progress("image %s is ready: kernel %s, %d MB", m.Key[:16], t.release, (m.Boot.Size+m.Base.Size)>>20)
	return open(home)
}

// touch takes the inputs' new times into the manifest of an image whose contents are
// still right.
func (i *Image) touch(m Manifest) (*Image, error) {
	i.Manifest.Inputs, i.Manifest.Programs, i.Manifest.Absent = m.Inputs, m.Programs, m.Absent
	i.Manifest.Built = m.Built
	raw, err := json.MarshalIndent(i.Manifest, "", "  ")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(i.Dir, manifestFile)
	if err := writeSynced(path+".new", raw); err != nil {
		return nil, err
	}
	return i, os.Rename(path+".new", path)
}

// key hashes the inputs: equal keys mean equal images.
func (m *Manifest) key() string {
	h := sha256.New()
	fmt.Fprintln(h, m.Recipe, m.Kernel.Release, m.Kernel.Source, m.Kernel.Debs)
	for _, in := range m.Inputs {
		fmt.Fprintln(h, in.Path, in.SHA256)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func machineName() string {
	raw, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(raw)) {
		if name, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return strings.Trim(strings.TrimSpace(name), `"`)
		}
	}
	return "unknown"
}
