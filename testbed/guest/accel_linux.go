package guest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rocebed/rocebed/images"
	"golang.org/x/sys/unix"
)

// try is one boot to attempt.
type try struct {
	accel    string
	patience time.Duration
	remember bool // its outcome decides what later boots try
}

// attempts is what to try, in order.
func attempts(cfg *Config, memory accelMemory) []try {
	tcg := try{accel: "tcg", patience: cfg.BootTimeout}
	kvm := try{accel: "kvm", patience: kvmPatience}
	var list []try
	switch known := memory.load(); {
	case cfg.Accel == "kvm":
		kvm.patience = cfg.BootTimeout
		return []try{kvm}
	case cfg.Accel == "tcg" || known == "tcg" || unix.Access("/dev/kvm", unix.R_OK|unix.W_OK) != nil:
	case known == "kvm":
		kvm.patience = cfg.BootTimeout
		list = append(list, kvm)
	default:
		kvm.remember = true
		list = append(list, kvm)
	}
	for range tcgBoots {
		list = append(list, tcg)
	}
	return list
}

// accelMemory remembers in the cache which accelerator works, so that later boots don't
// wait for one that doesn't.
type accelMemory struct {
	dir string
	key string
}

// accelKey is what the answer depends on: QEMU, the guest's kernel, and this boot of the
// machine (its own kernel and, where it is a VM, the host below it).
func accelKey(qemu string, img *images.Image) string {
	h := sha256.New()
	if st, err := os.Stat(qemu); err == nil {
		fmt.Fprintln(h, qemu, st.Size(), st.ModTime().UnixNano())
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	fmt.Fprintln(h, img.Manifest.Boot.SHA256, strings.TrimSpace(string(boot)))
	return hex.EncodeToString(h.Sum(nil))
}

type accelFile struct {
	Key   string `json:"key"`
	Accel string `json:"accel"`
	// When and why, for a reader.
	When time.Time `json:"when"`
	Why  string    `json:"why,omitempty"`
}

func (m accelMemory) path() string { return filepath.Join(m.dir, "accel.json") }

// load returns what is known to work, or "".
func (m accelMemory) load() string { return m.read().Accel }

// read returns what is remembered; nothing, where it was of another machine, kernel or QEMU.
func (m accelMemory) read() accelFile {
	raw, err := os.ReadFile(m.path())
	var f accelFile
	if err != nil || json.Unmarshal(raw, &f) != nil || f.Key != m.key {
		return accelFile{}
	}
	return f
}

// Remembered says what boots of an image found out about this machine's accelerators. An empty
// cacheDir means images.DefaultCacheDir.
func Remembered(img *images.Image, cacheDir string) (Accelerator, bool) {
	qemu, err := findQEMU()
	if err != nil || img == nil {
		return Accelerator{}, false
	}
	if cacheDir == "" {
		if cacheDir, err = images.DefaultCacheDir(); err != nil {
			return Accelerator{}, false
		}
	}
	m := accelMemory{dir: cacheDir, key: accelKey(qemu, img)}
	f := m.read()
	return Accelerator{Accel: f.Accel, When: f.When, Why: f.Why, File: m.path()}, f.Accel != ""
}

// store remembers, if it can: a boot does not fail for it.
func (m accelMemory) store(accel, why string) {
	f, err := os.CreateTemp(m.dir, "tmp-accel-")
	if err != nil {
		return
	}
	_, err = f.Write(mustJSON(accelFile{Key: m.key, Accel: accel, When: time.Now(), Why: why}))
	if f.Close() != nil || err != nil || os.Rename(f.Name(), m.path()) != nil {
		os.Remove(f.Name())
	}
}
