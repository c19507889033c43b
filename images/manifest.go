package images

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// layout is the version of what an image folder holds. It is part of the key: raise it
// when the builder puts the same inputs together differently.
const layout = 1

// Manifest says what an image is made of, down to every version and hash.
type Manifest struct {
	Layout int `json:"layout"`
	// Key is a SHA-256 over all inputs; Recipe one over what the builder wanted.
	Key    string    `json:"key"`
	Recipe string    `json:"recipe"`
	Built  time.Time `json:"built"`
	Kernel Kernel    `json:"kernel"`
	// Boot is the kernel as the VMM loads it, Base the archive with the userland.
	Boot Output `json:"boot"`
	Base Output `json:"base"`
	// Machine names the system that the userland was taken from.
	Machine string `json:"machine"`
	// Programs are the programs asked for that the machine has; Absent are the
	// optional ones that it lacks.
	Programs []Program `json:"programs"`
	Absent   []string  `json:"absent,omitempty"`
	// Inputs are the machine's files whose change makes the image stale.
	Inputs []Input `json:"inputs"`
	// Entries are the files in the base archive.
	Entries []Entry `json:"entries"`
}

// Kernel is where the guest's kernel came from.
type Kernel struct {
	Release string    `json:"release"` // as uname -r says it
	Source  string    `json:"source"`  // "machine" or the Debian suite
	Format  string    `json:"format"`  // "elf" (entered through PVH) or "bzImage"
	Modules []string  `json:"modules"` // names of the modules in the image
	Debs    []Package `json:"packages,omitempty"`
}

// Package is a Debian package that the kernel was taken from.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
}

// Program is a program of the userland and the package it came from, where the machine
// can tell.
type Program struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Package string `json:"package,omitempty"`
	Version string `json:"version,omitempty"`
	SHA256  string `json:"sha256"`
}

// Input is a file of the machine as it was when the image was built.
type Input struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	MTime  int64  `json:"mtime_ns"`
	SHA256 string `json:"sha256"`
}

// Entry is a file in the base archive.
type Entry struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"`
	Target string `json:"target,omitempty"` // of a symbolic link
}

// Output is a file of the image itself.
type Output struct {
	File   string `json:"file"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Image is an image in the cache, ready to boot.
type Image struct {
	Dir      string
	Manifest Manifest
}

// KernelPath is the kernel to give to the VMM.
func (i *Image) KernelPath() string { return filepath.Join(i.Dir, i.Manifest.Boot.File) }

// BasePath is the base archive: the first part of the initramfs.
func (i *Image) BasePath() string { return filepath.Join(i.Dir, i.Manifest.Base.File) }

// Has tells whether the base archive holds an entry of that name (absolute).
func (i *Image) Has(name string) bool {
	for _, e := range i.Manifest.Entries {
		if e.Name == name {
			return true
		}
	}
	return false
}

// Verify reads the image whole and compares it with its manifest's hashes.
func (i *Image) Verify() error {
	for _, o := range []Output{i.Manifest.Boot, i.Manifest.Base} {
		path := filepath.Join(i.Dir, o.File)
		sum, err := hashFile(path)
		if err != nil {
			return fmt.Errorf("verify image: %w", err)
		}
		if sum != o.SHA256 {
			return fmt.Errorf("verify image: %s: SHA-256 is %s, the manifest says %s; remove %s and run `rocebed image build`",
				path, sum, o.SHA256, i.Dir)
		}
	}
	return nil
}

const manifestFile = "manifest.json"

// open reads the image in dir and checks that it is complete.
func open(dir string) (*Image, error) {
	raw, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, err
	}
	img := &Image{Dir: dir}
	if err := json.Unmarshal(raw, &img.Manifest); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, manifestFile), err)
	}
	if img.Manifest.Layout != layout {
		return nil, fmt.Errorf("%s: layout %d, this rocebed writes %d", dir, img.Manifest.Layout, layout)
	}
	for _, o := range []Output{img.Manifest.Boot, img.Manifest.Base} {
		st, err := os.Stat(filepath.Join(dir, o.File))
		if err != nil {
			return nil, err
		}
		if st.Size() != o.Size {
			return nil, fmt.Errorf("%s: %s has %d bytes, its manifest says %d", dir, o.File, st.Size(), o.Size)
		}
	}
	return img, nil
}
