package guest

import (
	"io"
	"io/fs"
	"time"

	"github.com/rocebed/rocebed/images"
)

// Config says what guest to boot. The zero value is a guest of 1 GiB with the calling
// binary as its init.
type Config struct {
	// MemoryMB is the guest's memory in MiB; 0 means 1024. What is shipped comes on top.
	MemoryMB int
	// CPUs is the number of virtual processors; 0 means the machine's, between 2 and 4.
	CPUs int
	// Files are put into the guest's file system before it starts.
	Files []File
	// Binary becomes /usr/bin/rocebed in the guest and its init: a program that calls
	// Init when started with InitArg as its first argument. Empty means this process's
	// own executable.
	Binary string
	// Image is the image to boot; nil means images.Build with the defaults.
	Image *images.Image
	// CacheDir is where the image and what is known about accelerators live; empty
	// means images.DefaultCacheDir.
	CacheDir string
	// Accel is "kvm" or "tcg"; empty means $ROCEBED_GUEST_ACCEL, else what works.
	Accel string
	// BootTimeout bounds one boot under TCG, from the start of QEMU to the guest's
	// hello; 0 means 90 s. (2 to 4 s are usual.)
	BootTimeout time.Duration
	// HangAfter is how long a guest may leave a question unanswered before it counts as
	// hung; 0 means 45 s. A TCG guest with busy processors answers in well under 1 s.
	HangAfter time.Duration
	// Console, where set, gets all that the guest's kernel prints.
	Console io.Writer
	// Progress, where set, is told each step as it begins.
	Progress func(step string)

	// tscKHz, where set, takes the place of the measured frequency of the time stamp
	// counter, given the number of boots that failed: tests boot guests whose clock is off.
	tscKHz func(failed, measured int) int
}

// File is a file or folder to ship into a guest.
type File struct {
	// From is its path on the machine; a folder comes with all below it. Links are
	// followed.
	From string
	// Content is the file itself, where From is empty.
	Content []byte
	// To is its absolute path in the guest.
	To string
	// Mode is the permissions of a file given as Content; 0 means 0644.
	Mode fs.FileMode
}

// InitArg is the first argument that starts a binary as a guest's init.
const InitArg = "guest-init"

// BinaryPath is where the booting binary lies in the guest.
const BinaryPath = "/usr/bin/rocebed"

// Report says how a guest came up.
type Report struct {
	// Accel is "kvm" or "tcg".
	Accel string `json:"accel"`
	// Kernel is the release that runs in the guest.
	Kernel string `json:"kernel"`
	// MemoryMB and CPUs are what the guest got.
	MemoryMB int `json:"memory_mb"`
	CPUs     int `json:"cpus"`
	// Boot is the wall time of the boot that succeeded, from the start of QEMU to hello;
	// Total the time in Boot, failed attempts and image included.
	Boot  time.Duration `json:"boot_ns"`
	Total time.Duration `json:"total_ns"`
	// Steps are the guest's own times, on its clock since power-on.
	Steps []Step `json:"steps"`
	// TSCKHz is the frequency of the processor's time stamp counter in kHz, as measured on
	// the machine and told to a guest under TCG; 0: the guest measured itself.
	TSCKHz int `json:"tsc_khz,omitempty"`
	// Clock is how the guest's clock went against the machine's until it said hello.
	Clock Clock `json:"clock"`
	// Waits is what the guest's threads got of the machine's processors while the command ran in it; nil: not known.
	Waits *Waits `json:"waits,omitempty"`
	// Failed are the boots that did not reach hello, or reached it with a clock that is off, in order.
	Failed []Attempt `json:"failed,omitempty"`
}

// Step is a point in the guest's start.
type Step struct {
	Name string        `json:"name"`
	At   time.Duration `json:"at_ns"`
}

// Attempt is a boot that failed.
type Attempt struct {
	Accel  string        `json:"accel"`
	Lasted time.Duration `json:"lasted_ns"`
	Reason string        `json:"reason"`
}
