package testbed

import (
	"fmt"
	"strconv"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/expect"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
	"github.com/rocebed/rocebed/workloads"
)

// APIVersion is what a scenario's apiVersion must be.
const APIVersion = "rocebed/v1"

// Scenario is a scenario file that has been read and checked: what can be wrong with it on
// any machine is not.
type Scenario struct {
	Name     string
	Seed     uint64
	Backend  Backend
	Dilation Dilation

	NICs      fabric.NICSettings
	Switches  fabric.SwitchSettings
	Workloads []workloads.Spec
	// Faults are those of the file with sequences, groups and storms taken apart (faults.Expand).
	Faults []faults.Spec
	Expect []string

	Topology *topo.Topology
	Plan     *topo.Plan

	Path   string // as it was given to Load
	Source []byte // the file as it was read

	faultKeys []string // where in the file each of Faults comes from
	doc       *strict.Document
	env       *expect.Env
	programs  []*expect.Program // of Expect, in order
}

// file is the scenario file's layout: the top-level keys.
type file struct {
	APIVersion string                `yaml:"apiVersion,required"`
	Name       string                `yaml:"name,required"`
	Seed       uint64                `yaml:"seed"`
	Backend    Backend               `yaml:"backend"`
	Dilation   Dilation              `yaml:"dilation"`
	Topology   topo.Spec             `yaml:"topology,required"`
	NICs       fabric.NICSettings    `yaml:"nics"`
	Switches   fabric.SwitchSettings `yaml:"switches"`
	Workloads  []workloads.Spec      `yaml:"workloads"`
	Faults     []faults.Spec         `yaml:"faults"`
	Expect     []string              `yaml:"expect"`
}

// Backend chooses the node kinds and the clock.
type Backend string

// The backends. The empty backend is auto.
const (
	Auto   Backend = "auto"   // kernel where this machine's kernel can
	Kernel Backend = "kernel" // namespaces, rdma_rxe and tc
	Soft   Backend = "soft"   // the software RNIC and switch on AF_PACKET
	Sim    Backend = "sim"    // the same in memory and in virtual time
)

// Backends are the names that a backend may be given by.
func Backends() []string { return []string{string(Auto), string(Kernel), string(Soft), string(Sim)} }

// ParseBackend reads a backend's name.
func ParseBackend(s string) (Backend, error) {
	switch b := Backend(s); b {
	case Auto, Kernel, Soft, Sim:
		return b, nil
	}
	return "", fmt.Errorf("%q is no backend%s", s, strict.DidYouMean(s, Backends()))
}

// UnmarshalText reads a backend's name.
func (b *Backend) UnmarshalText(text []byte) (err error) {
	*b, err = ParseBackend(string(text))
	return err
}

// Dilation is a scenario's dilation: a power of two, or 0 for auto, the smallest that the
// machine sustains.
type Dilation uint32

// ParseDilation reads "auto" or a power of two.
func ParseDilation(s string) (Dilation, error) {
	if s == "auto" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is neither auto nor a power of two", s)
	}
	d, err := loop.NewDilation(n)
	return Dilation(d), err
}

// UnmarshalText reads "auto" or a power of two.
func (d *Dilation) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDilation(string(text))
	return err
}

// String writes "auto" or the factor.
func (d Dilation) String() string {
	if d == 0 {
		return "auto"
	}
	return strconv.FormatUint(uint64(d), 10)
}

// Load reads and checks a scenario file. What is wrong in it comes as strict.Problems: all of
// it, each with file, line and column.
func Load(path string) (*Scenario, error) {
	source, err := ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	return Parse(path, source)
}

// Parse is Load for bytes that were read already; path is for messages.
func Parse(path string, source []byte) (*Scenario, error) {
	f := file{Seed: 1}
	doc, err := strict.Read(path, source, &f)
	if doc.Unread() {
		return nil, err // of what could not be read, nothing more can be said
	}
	s := &Scenario{
		Name: f.Name, Seed: f.Seed, Backend: f.Backend, Dilation: f.Dilation, NICs: f.NICs, Switches: f.Switches,
		Workloads: f.Workloads, Expect: f.Expect,
		Path: path, Source: source, doc: doc,
	}
	if s.Backend == "" {
		s.Backend = Auto
	}
	c := &checker{s: s, f: &f}
	c.take("", err)
	c.check()
	if err := c.err(); err != nil {
		return nil, err
	}
	return s, nil
}
