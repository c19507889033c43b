package guest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/rocebed/rocebed/images"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// keys are the two ends' identities, made for one boot.
type keys struct {
	client  ssh.Signer
	host    ssh.PublicKey
	hostRaw []byte // seed
}

func newKeys() (*keys, error) {
	_, client, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	hostPub, host, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	k := &keys{hostRaw: host.Seed()}
	if k.client, err = ssh.NewSignerFromKey(client); err != nil {
		return nil, err
	}
	k.host, err = ssh.NewPublicKey(hostPub)
	return k, err
}

// initramfs puts the base archive and this boot's own behind it into a file in memory
// that has no name: nothing is left behind, whatever happens.
func initramfs(ctx context.Context, cfg *Config, img *images.Image, k *keys) (*os.File, error) {
	fd, err := unix.MemfdCreate("rocebed-guest", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("guest archive: %w", err)
	}
	f := os.NewFile(uintptr(fd), "guest archive")
	if err := fillInitramfs(ctx, f, cfg, img, k); err != nil {
		f.Close()
		return nil, fmt.Errorf("guest archive: %w", err)
	}
	return f, nil
}

func fillInitramfs(ctx context.Context, f *os.File, cfg *Config, img *images.Image, k *keys) error {
	base, err := os.Open(img.BasePath())
	if err != nil {
		return err
	}
	defer base.Close()
	if _, err := io.Copy(f, base); err != nil {
		return err
	}
	a := images.NewArchiveWriter(f)
	spec := bootSpec{HostKey: k.hostRaw, ClientKey: k.client.PublicKey().Marshal()}
	if err := a.Bytes(bootSpecPath, 0o600, mustJSON(spec)); err != nil {
		return err
	}
	if err := addFile(a, cfg.Binary, BinaryPath, 0o755); err != nil {
		return err
	}
	libs, err := images.Libraries(ctx, cfg.Binary)
	if err != nil {
		return err
	}
	for _, lib := range libs {
		to := images.GuestPath(lib)
		if img.Has(to) || a.Has(to) {
			continue
		}
		if err := addFile(a, lib, to, 0o755); err != nil {
			return err
		}
	}
	for _, file := range cfg.Files {
		if err := addShipped(a, file); err != nil {
			return err
		}
	}
	return a.Close()
}

func addShipped(a *images.ArchiveWriter, file File) error {
	if !path.IsAbs(file.To) {
		return fmt.Errorf("ship to %q: not an absolute path", file.To)
	}
	if file.From == "" {
		mode := file.Mode
		if mode == 0 {
			mode = 0o644
		}
		return a.File(file.To, uint32(mode.Perm()), int64(len(file.Content)), bytes.NewReader(file.Content))
	}
	err := walk(file.From, file.To, 0, func(from, to string, st fs.FileInfo) error {
		if st.IsDir() {
			return a.Dir(to, uint32(st.Mode().Perm()))
		}
		return addFile(a, from, to, uint32(st.Mode().Perm()))
	})
	if err != nil {
		return fmt.Errorf("ship %s: %w", file.From, err)
	}
	return nil
}

func addFile(a *images.ArchiveWriter, from, to string, perm uint32) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s: not a file", from)
	}
	return a.File(to, perm, st.Size(), f)
}

// settleBinary finds the binary that is to be the guest's init.
func (c *Config) settleBinary() error {
	if c.Binary == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		c.Binary = self
	}
	if strings.HasSuffix(c.Binary, " (deleted)") {
		return errors.New("this program's own file was removed while it ran; start it anew")
	}
	var err error
	c.Binary, err = filepath.EvalSymlinks(c.Binary)
	return err
}
