package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"time"

	"golang.org/x/sys/unix"
)

const (
	cacheEnv  = "ROCEBED_CACHE"
	tmpPrefix = "tmp-"
	// keepImages is how many images stay in the cache: the current one and the one
	// before it, which a guest that boots just now may still be reading.
	keepImages = 2
)

// DefaultCacheDir is where images live unless told otherwise: $ROCEBED_CACHE, else
// /var/cache/rocebed for root and ~/.cache/rocebed (by XDG_CACHE_HOME) for others.
func DefaultCacheDir() (string, error) {
	if dir := os.Getenv(cacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	if os.Geteuid() == 0 {
		return "/var/cache/rocebed", nil
	}
	home, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache folder: %w; set %s", err, cacheEnv)
	}
	return filepath.Join(home, "rocebed"), nil
}

// lock takes the cache's lock, which ends with the process that holds it. While another
// process builds, it waits and says so once.
func lock(ctx context.Context, o Options) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(o.CacheDir, "lock"), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	said := false
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		if !said {
			o.progress("waiting for another build of the image to end")
			said = true
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// sweep removes what killed builds left. Call it under the lock: nobody else writes.
func sweep(cache string) error {
	left, err := filepath.Glob(filepath.Join(cache, tmpPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// kept returns the complete images in the cache, newest first.
func kept(cache string) []*Image {
	dirs, _ := filepath.Glob(filepath.Join(cache, "images/*"))
	var images []*Image
	for _, dir := range dirs {
		if img, err := open(dir); err == nil {
			images = append(images, img)
		}
	}
	sort.Slice(images, func(i, j int) bool { return images[i].Manifest.Built.After(images[j].Manifest.Built) })
	return images
}

// prune removes images beyond the newest few, and folders that are no image of this
// layout.
func prune(cache string) error {
	keep := map[string]bool{}
	for i, img := range kept(cache) {
		if i < keepImages {
			keep[img.Dir] = true
		}
	}
	dirs, _ := filepath.Glob(filepath.Join(cache, "images/*"))
	for _, dir := range dirs {
		if !keep[dir] {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeSynced writes a file and waits until the disk has it.
func writeSynced(path string, content []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncTree waits until the disk has every file below root.
func syncTree(root string) error {
	return filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}
