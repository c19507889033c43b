package images

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	suite   = "trixie-backports"
	keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
	// mirrorEnv overrides the mirror found in the machine's apt sources.
	mirrorEnv  = "ROCEBED_DEBIAN_MIRROR"
	kernelFile = "kernel.json"
)

// fetchDebian takes the newest kernel of Debian's trixie-backports into the cache with
// apt in a root of its own: the machine's package state is neither read nor changed,
// and apt verifies signatures and hashes from the archive's key down to each package.
func fetchDebian(ctx context.Context, o Options) (*tree, error) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, errors.New("no apt-get here: install a kernel with rdma_rxe by this system's own means, or build the image on a Debian machine")
	}
	if _, err := os.Stat(keyring); err != nil {
		return nil, fmt.Errorf("%w (Debian package debian-archive-keyring)", err)
	}
	mirror, err := debianMirror(o)
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp(o.CacheDir, tmpPrefix)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	apt, err := newApt(work, mirror)
	if err != nil {
		return nil, err
	}
	o.progress("reading the package lists of Debian %s", suite)
	if _, err := apt.run(ctx, "apt-get", "update", "-q"); err != nil {
		return nil, fmt.Errorf("%w; the mirror is read from this machine's apt sources, %s=URL names another", err, mirrorEnv)
	}
	image, err := apt.depends(ctx, "linux-image-amd64", regexp.MustCompile(`^linux-image-\d`))
	if err != nil {
		return nil, err
	}
	if len(image) == 0 {
		return nil, fmt.Errorf("%s offers no linux-image-amd64", suite)
	}
	release := strings.TrimPrefix(image[0], "linux-image-")
	if t := kernelAt(filepath.Join(o.CacheDir, "kernels", release)); t != nil {
		o.progress("kernel %s: the newest offered is in the cache", release)
		return t, nil
	}
	parts, err := apt.depends(ctx, image[0], regexp.MustCompile(`^linux-(image|binary|modules)-.*`+regexp.QuoteMeta(release)))
	if err != nil {
		return nil, err
	}
	o.progress("fetching kernel %s (about 110 MB)", release)
	debs := filepath.Join(work, "debs")
	if err := os.Mkdir(debs, 0o755); err != nil {
		return nil, err
	}
	apt.dir = debs
	if _, err := apt.run(ctx, "apt-get", append([]string{"download", "-q", image[0]}, parts...)...); err != nil {
		return nil, err
	}
	o.progress("unpacking kernel %s", release)
	stage := filepath.Join(work, "tree")
	t := &tree{release: release, source: "Debian " + suite, root: stage}
	if t.debs, err = unpack(ctx, debs, stage); err != nil {
		return nil, err
	}
	if err := t.settle(ctx); err != nil {
		return nil, err
	}
	return t, t.keep(o.CacheDir)
}

// settle brings an unpacked tree into the shape of a kept one.
func (t *tree) settle(ctx context.Context) error {
	if _, err := os.Stat(t.modulesDir()); err != nil { // merged /usr
		if err := os.MkdirAll(filepath.Join(t.root, "lib"), 0o755); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(t.root, "usr/lib/modules"), filepath.Join(t.root, "lib/modules")); err != nil {
			return fmt.Errorf("the kernel packages hold no modules: %w", err)
		}
	}
	t.vmlinuz = filepath.Join(t.root, "vmlinuz")
	for _, p := range []string{filepath.Join(t.root, "boot/vmlinuz-"+t.release), filepath.Join(t.modulesDir(), "vmlinuz")} {
		if os.Rename(p, t.vmlinuz) == nil {
			break
		}
	}
	if _, err := os.Stat(t.vmlinuz); err != nil {
		return fmt.Errorf("the kernel packages hold no vmlinuz: %w", err)
	}
	return depmod(ctx, t.root, t.release)
}

// keep moves the tree to its place in the cache, whole.
func (t *tree) keep(cache string) error {
	raw, err := json.MarshalIndent(Kernel{Release: t.release, Source: t.source, Debs: t.debs}, "", "  ")
	if err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(t.root, kernelFile), raw); err != nil {
		return err
	}
	if err := syncTree(t.root); err != nil {
		return err
	}
	home := filepath.Join(cache, "kernels", t.release)
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(home); err != nil {
		return err
	}
	if err := os.Rename(t.root, home); err != nil {
		return err
	}
	t.root, t.vmlinuz = home, filepath.Join(home, "vmlinuz")
	return nil
}

// cachedKernel returns the newest kernel kept in the cache, or nil.
func cachedKernel(cache string) *tree {
	dirs, _ := filepath.Glob(filepath.Join(cache, "kernels/*"))
	var best *tree
	for _, dir := range dirs {
		if t := kernelAt(dir); t != nil && (best == nil || newer(t.release, best.release)) {
			best = t
		}
	}
	return best
}

func newer(a, b string) bool {
	x, y := releaseVersion(a), releaseVersion(b)
	for i := range x {
		if x[i] != y[i] {
			return x[i] > y[i]
		}
	}
	return a > b
}

func kernelAt(dir string) *tree {
	raw, err := os.ReadFile(filepath.Join(dir, kernelFile))
	if err != nil {
		return nil
	}
	var k Kernel
	if json.Unmarshal(raw, &k) != nil || k.Release == "" {
		return nil
	}
	t := &tree{release: k.Release, source: k.Source, debs: k.Debs, root: dir, vmlinuz: filepath.Join(dir, "vmlinuz")}
	for _, p := range []string{t.vmlinuz, filepath.Join(t.modulesDir(), "modules.dep")} {
		if _, err := os.Stat(p); err != nil {
			return nil
		}
	}
	return t
}

// unpack extracts every package in debs into root and says what they were.
func unpack(ctx context.Context, debs, root string) ([]Package, error) {
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil || files == nil {
		return nil, fmt.Errorf("apt-get download left no package in %s", debs)
	}
	var packages []Package
	for _, f := range files {
		p := Package{}
		if p.SHA256, err = hashFile(f); err != nil {
			return nil, err
		}
		out, err := output(ctx, "dpkg-deb", "--show", "--showformat=${Package} ${Version}", f)
		if err != nil {
			return nil, err
		}
		p.Name, p.Version, _ = strings.Cut(strings.TrimSpace(out), " ")
		if _, err := output(ctx, "dpkg-deb", "--extract", f, root); err != nil {
			return nil, err
		}
		if err := os.Remove(f); err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// apt runs apt's tools with every path inside a scratch root.
type apt struct {
	options []string
	dir     string
}

func newApt(root, mirror string) (*apt, error) {
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(root, "apt", d), 0o755); err != nil {
			return nil, err
		}
	}
	at := func(p string) string { return filepath.Join(root, "apt", p) }
	source := fmt.Sprintf("deb [arch=amd64 signed-by=%s] %s %s main\n", keyring, mirror, suite)
	for name, content := range map[string]string{"sources.list": source, "status": ""} {
		if err := os.WriteFile(at(name), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	a := &apt{dir: root}
	for _, o := range []string{
		"APT::Architecture=amd64",
		"APT::Sandbox::User=", // the scratch root is ours alone
		"Dir::Etc::sourcelist=" + at("sources.list"),
		"Dir::Etc::sourceparts=/dev/null",
		"Dir::State::Lists=" + at("lists"),
		"Dir::State::status=" + at("status"),
		"Dir::Cache=" + at("cache"),
		"Acquire::Languages=none",
		"Acquire::Retries=3",
		"APT::Update::Error-Mode=any", // else an unreachable mirror is a mere warning
	} {
		a.options = append(a.options, "-o", o)
	}
	return a, nil
}

func (a *apt) run(ctx context.Context, tool string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, tool, append(append([]string{}, a.options...), args...)...)
	cmd.Dir = a.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	return finish(cmd)
}

// depends lists what a package depends on, of the names that match.
func (a *apt) depends(ctx context.Context, pkg string, match *regexp.Regexp) ([]string, error) {
	out, err := a.run(ctx, "apt-cache", "depends", "--no-suggests", "--no-recommends", pkg)
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(out) {
		if _, name, ok := strings.Cut(line, "Depends: "); ok {
			if name = strings.TrimSpace(name); match.MatchString(name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// debianMirror is the mirror that the machine itself uses.
func debianMirror(o Options) (string, error) {
	if m := os.Getenv(mirrorEnv); m != "" {
		return m, nil
	}
	files, _ := filepath.Glob("/etc/apt/sources.list.d/*")
	for _, f := range append(files, "/etc/apt/sources.list") {
		raw, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		var m string
		if strings.HasSuffix(f, ".sources") {
			m = mirrorOfStanzas(raw)
		} else {
			m = mirrorOfLines(raw)
		}
		if m != "" {
			return m, nil
		}
	}
	return "", fmt.Errorf("the machine's apt sources name no mirror; set %s=URL to a Debian mirror", mirrorEnv)
}

// mirrorOfStanzas reads deb822 sources: the first URI of an enabled stanza that serves
// packages and is not the security archive.
func mirrorOfStanzas(raw []byte) string {
	for _, stanza := range strings.Split(string(raw), "\n\n") {
		fields := map[string]string{}
		for line := range strings.Lines(stanza) {
			if key, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") {
				fields[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
			}
		}
		if strings.EqualFold(fields["enabled"], "no") || !hasWord(fields["types"], "deb") || strings.Contains(fields["suites"], "-security") {
			continue
		}
		if uris := strings.Fields(fields["uris"]); len(uris) > 0 {
			return uris[0]
		}
	}
	return ""
}

// mirrorOfLines reads one-line sources: deb [options] URI suite components.
func mirrorOfLines(raw []byte) string {
	scanner := bufio.NewScanner(bytes.NewReader(raw))
	for scanner.Scan() {
		line := regexp.MustCompile(`\[[^]]*\]`).ReplaceAllString(scanner.Text(), "")
		f := strings.Fields(line)
		if len(f) >= 3 && f[0] == "deb" && strings.Contains(f[1], "://") && !strings.Contains(f[2], "-security") && !strings.HasPrefix(f[1], "cdrom:") {
			return f[1]
		}
	}
	return ""
}

func hasWord(s, word string) bool {
	for _, w := range strings.Fields(s) {
		if w == word {
			return true
		}
	}
	return false
}
