package images

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// minKernel is the first Linux whose rxe works inside network namespaces.
var minKernel = [2]int{7, 1}

// tree is a kernel with its modules on disk.
type tree struct {
	release string
	source  string
	vmlinuz string
	root    string // holds lib/modules/RELEASE
	debs    []Package
}

func (t *tree) modulesDir() string { return filepath.Join(t.root, "lib/modules", t.release) }

// machineKernel returns the newest kernel installed on the machine that a guest can
// use, or nil where there is none: at least minKernel, with rdma_rxe, and readable.
func machineKernel(root string) *tree {
	dirs, _ := filepath.Glob(filepath.Join(root, "lib/modules/*"))
	var found []*tree
	for _, dir := range dirs {
		t := &tree{release: filepath.Base(dir), source: "machine", root: root}
		v := releaseVersion(t.release)
		if v[0] < minKernel[0] || v[0] == minKernel[0] && v[1] < minKernel[1] {
			continue
		}
		if rxe, _ := filepath.Glob(filepath.Join(dir, "kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko*")); rxe == nil {
			continue
		}
		for _, p := range []string{filepath.Join(root, "boot/vmlinuz-"+t.release), filepath.Join(dir, "vmlinuz")} {
			if f, err := os.Open(p); err == nil {
				f.Close()
				t.vmlinuz = p
				break
			}
		}
		if t.vmlinuz != "" {
			found = append(found, t)
		}
	}
	if found == nil {
		return nil
	}
	sort.Slice(found, func(i, j int) bool {
		a, b := releaseVersion(found[i].release), releaseVersion(found[j].release)
		for k := range a {
			if a[k] != b[k] {
				return a[k] > b[k]
			}
		}
		return found[i].release > found[j].release
	})
	return found[0]
}

// releaseVersion reads the leading numbers of a kernel release: 7.3.4+deb13 is 7, 3, 4.
func releaseVersion(release string) [3]int {
	var v [3]int
	for i, part := range strings.SplitN(release, ".", 3) {
		digits := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
		if digits < 0 {
			digits = len(part)
		}
		v[i], _ = strconv.Atoi(part[:digits])
		if digits < len(part) {
			break
		}
	}
	return v
}

// findKernel returns the machine's own kernel where it will do, else Debian's: the one
// already in the cache, or with refresh (or nothing cached) the newest one offered.
func findKernel(ctx context.Context, o Options) (*tree, error) {
	if t := machineKernel("/"); t != nil {
		o.progress("kernel %s: the machine's own", t.release)
		return t, nil
	}
	if !o.Refresh {
		if t := cachedKernel(o.CacheDir); t != nil {
			o.progress("kernel %s: from the cache", t.release)
			return t, nil
		}
	}
	t, err := fetchDebian(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("guest kernel: this machine has none (Linux ≥ %d.%d with rdma_rxe), and fetching Debian's failed: %w",
			minKernel[0], minKernel[1], err)
	}
	return t, nil
}
