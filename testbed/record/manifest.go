package record

import (
	"encoding/json"
	"fmt"
	"time"
)

// Format is the version of the layout that this code writes.
const Format = 1

// Manifest is manifest.json.
type Manifest struct {
	Format   int    `json:"format"`
	Name     string `json:"name"`
	Complete bool   `json:"complete"` // false: the run was cut short, or is still going on
	Verdict  string `json:"verdict"`  // "pass" or "fail"; empty until complete
	Hash     string `json:"hash"`     // of data/, hexadecimal; empty until complete

	Backend    string `json:"backend"`
	BackendWhy string `json:"backend_why,omitempty"`
	Guest      bool   `json:"guest"`
	// GuestBoot is what the guest said of its boot: accelerator, tries, kernel, image.
	GuestBoot json.RawMessage `json:"guest_boot,omitempty"`
	// Dilation is wall time ÷ fabric time. Virtual time has none: it is 0 there, and VirtualTime is set.
	Dilation    uint32 `json:"dilation"`
	VirtualTime bool   `json:"virtual_time"`
	// DilationNamed is what the scenario or the command line said: auto, or a power of two. In virtual time DCQCN's least rate and the timers of
	// NICs like rxe follow from it.
	DilationNamed string `json:"dilation_named"`
	Seed          uint64 `json:"seed"`

	Versions map[string]string `json:"versions"` // rocebed, commit, go, rdma-core…
	Host     Host              `json:"host"`

	Started time.Time     `json:"started"`
	Ended   time.Time     `json:"ended"`
	Wall    time.Duration `json:"wall_ns"` // of the whole run
	// Phases are the wall times of the run's parts, in order.
	Phases []PhaseTime `json:"phases,omitempty"`

	Scenario string `json:"scenario"` // path as given
	Path     string `json:"path"`     // of this folder

	// Problems are why a run failed apart from its expectations.
	Problems []string `json:"problems,omitempty"`
}

// PhaseTime is how long a part of the run took.
type PhaseTime struct {
	Name string        `json:"name"`
	Wall time.Duration `json:"wall_ns"`
}

// Host is the machine (or guest) that the fabric lived on.
type Host struct {
	Kernel string `json:"kernel"`
	Arch   string `json:"arch"`
	CPUs   int    `json:"cpus"`
	Memory uint64 `json:"memory_bytes"`
}

// Event is something that happened, in fabric time since the workloads started (negative:
// before them).
type Event struct {
	At     time.Duration `json:"t"`
	Source string        `json:"source"`          // run, fault, workload, keepup…
	Name   string        `json:"name,omitempty"`  // of the fault or workload
	What   string        `json:"what"`            // planned, applied, verified, healed…
	Text   string        `json:"text,omitempty"`  // for a reader
	Data   any           `json:"data,omitempty"`  // for a program
	Level  string        `json:"level,omitempty"` // warning or error; empty: information
}

// Amend changes the manifest of a record that is complete in itself: what only the machine
// around it knows. data/ and its hash stay as they are.
func Amend(dir string, change func(*Manifest)) error {
	r, err := Open(dir)
	if err != nil {
		return err
	}
	m := r.manifest
	change(&m)
	b, err := encode(m, "  ")
	if err != nil {
		return err
	}
	if err := writeWhole(dir, ManifestFile, b); err != nil {
		return fmt.Errorf("record %s: %w", dir, err)
	}
	return nil
}
