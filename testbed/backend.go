package testbed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

// Builder brings fabrics up on one backend. It is registered by the file that builds where
// the backend works.
type Builder struct {
	Backend Backend
	// Virtual says that the backend's time is virtual: dilation only sets DCQCN's least rate there, and a fabric lives only as long
	// as a run.
	Virtual bool
	// Built says why this binary can't on any machine, in a guest as little as here; nil when it can.
	Built func() error
	// Capable says why this machine can't, and how to change that; nil when it can.
	Capable func(ctx context.Context) error
	// Lacks says what a scenario asks for that this machine's kernel hasn't got, although it is capable; nil where it has all. A backend that takes the same
	// kernel for all scenarios has none.
	Lacks func(s *Scenario) error
	// Rootless says why the command of a user who isn't root can't, by entering a user namespace first; nil when it can. A
	// backend for which there is no such way has none.
	Rootless func() error
	// CheckName says whether a testbed may be called that; nil: anything does.
	CheckName func(testbed string) error
	// Check refuses what of a scenario the backend can't do at a dilation, before anything is
	// created: node kinds, features, faults. Its errors are strict.PathErrors from the scenario's top.
	Check func(s *Scenario, d loop.Dilation) error
	// Reaction is how long a pause that a switch sends may take to be obeyed at a dilation, in fabric time; nil: it is obeyed at once.
	Reaction func(n *topo.Node, d loop.Dilation) time.Duration
	// Calibrate is the smallest dilation at which this machine carries the scenario. A Virtual backend has none.
	Calibrate func(ctx context.Context, s *Scenario) (loop.Dilation, string, error)
	// Build brings the fabric up. What it made is gone again when it returns an error.
	Build func(ctx context.Context, cfg BuildConfig) (fabric.Fabric, error)
}

// BuildConfig is what a fabric is built from.
type BuildConfig struct {
	// Testbed is the name that everything made belongs to. Two testbeds of one name can't live
	// at once.
	Testbed  string
	Scenario *Scenario
	Seed     uint64
	Dilation loop.Dilation
	Log      *slog.Logger
	// Step is told what is being built, for progress.
	Step func(text string)
}

var builders = map[Backend]*Builder{}

// Register makes a backend known. It is called while packages initialise.
func Register(b *Builder) { builders[b.Backend] = b }

// ErrIncapable says that this machine can't do what was asked: exit code 3.
var ErrIncapable = errors.New("this machine can't")

// Choice is the backend that a run uses, and why.
type Choice struct {
	Backend Backend
	Guest   bool     // on a microVM's kernel instead of this machine's
	Why     string   // a sentence for the user
	Builder *Builder // nil where the backend was not built; then Guest is set
}

// Choose decides where a scenario runs. want overrides the scenario's backend unless it is
// empty; guest asks for the guest whatever this machine can.
func Choose(ctx context.Context, s *Scenario, want Backend, guest bool) (Choice, error) {
	if want == "" {
		want = s.Backend
	}
	switch {
	case want == Auto && guest: // the guest's kernel is what it is for
		return chooseKernel(ctx, s, fmt.Sprintf("backend %s: it runs verbs on a real kernel", Kernel), true)
	case want == Auto && kernelKind(s) != "":
		return chooseKernel(ctx, s, fmt.Sprintf("backend %s: the topology has a %s, which no other has", Kernel, kernelKind(s)), false)
	case want == Auto:
		return chooseAuto(ctx, s)
	case want == Kernel:
		return chooseKernel(ctx, s, fmt.Sprintf("backend %s, as asked", Kernel), guest)
	case guest:
		return Choice{}, fmt.Errorf("%w: the guest brings a kernel, and the %s backend needs none of its own: leave --guest out, or use --backend %s", ErrIncapable, want, Kernel)
	}
	b := builders[want]
	if b == nil {
		return Choice{}, fmt.Errorf("%w: this rocebed has no %s backend on %s: it has %s", ErrIncapable, want, runtime.GOOS, strings.Join(registered(), ", "))
	}
	if err := errors.Join(b.Built(), b.Capable(ctx)); err != nil {
		return Choice{}, fmt.Errorf("%w: %w", ErrIncapable, err)
	}
	return Choice{Backend: want, Builder: b, Why: fmt.Sprintf("backend %s, as asked; %s", want, what[want])}, nil
}

// CheckBackend says what of a scenario its backend can't do, on any machine: what Run would refuse before it creates anything.
// want overrides the scenario's backend unless it is empty. With auto it says nothing but of node kinds that the kernel's alone makes:
// what can be had depends on the machine then.
func CheckBackend(s *Scenario, want Backend) error {
	if want == "" {
		want = s.Backend
	}
	if want == Auto && kernelKind(s) != "" {
		want = Kernel
	}
	return Choice{Backend: want, Builder: builders[want]}.check(s, loop.Dilation(s.Dilation))
}

// kernelKind is a kind of node that the topology asks for and the kernel backend alone makes; empty: it asks for none.
func kernelKind(s *Scenario) topo.Kind {
	if s.Topology != nil {
		for i := range s.Topology.Nodes {
			if k := s.Topology.Nodes[i].Kind; k == topo.RxeHost || k == topo.LinuxSwitch {
				return k
			}
		}
	}
	return ""
}

// what says in a few words what a backend is, where no guest is in question.
var what = map[Backend]string{
	Kernel: "rdma_rxe in namespaces, switches that are the kernel's",
	Soft:   "software NICs and switches on this machine's veths",
	Sim:    "software NICs and switches in memory, in virtual time: nothing waits for the clock, and dilation sets DCQCN's least rate alone",
}

// registered are the backends that this rocebed has, in the order in which auto prefers them.
func registered() (names []string) {
	for _, b := range []Backend{Kernel, Soft, Sim} {
		if builders[b] != nil {
			names = append(names, string(b))
		}
	}
	return names
}

// Ability is whether this machine runs a backend, without a guest.
type Ability struct {
	Backend Backend `json:"backend"`
	Can     bool    `json:"can"`
	How     string  `json:"how"`           // where it can: what it is, and whether it takes a user namespace
	Why     string  `json:"why,omitempty"` // where it can't
}

// Abilities are those of all backends, in the order in which auto prefers them.
func Abilities(ctx context.Context) (all []Ability) {
	for _, name := range []Backend{Kernel, Soft, Sim} {
		a := Ability{Backend: name, How: what[name]}
		err, b := capable(ctx, name), builders[name]
		if err != nil && b != nil && b.Rootless != nil && os.Geteuid() != 0 && b.Rootless() == nil {
			err, a.How = nil, a.How+", in a user namespace that it enters by itself"
		}
		if a.Can = err == nil; !a.Can {
			a.Why = err.Error()
		}
		all = append(all, a)
	}
	return all
}

// chooseAuto takes the kernel where this machine's can, else software nodes in real time, else the guest's kernel;
// and where there is none of them, virtual time.
func chooseAuto(ctx context.Context, s *Scenario) (Choice, error) {
	kernel := capableOf(ctx, s)
	if kernel == nil {
		return Choice{Backend: Kernel, Builder: builders[Kernel],
			Why: fmt.Sprintf("backend %s: it runs verbs on a real kernel; on this machine's kernel, which has all that it needs (--guest runs it in a microVM instead, --backend %s in virtual time)", Kernel, Sim)}, nil
	}
	if soft := capable(ctx, Soft); soft == nil {
		others := fmt.Sprintf("--backend %s runs it in a microVM, --backend %s in virtual time", Kernel, Sim)
		if b := builders[Kernel]; b == nil || b.Built() != nil { // a guest would run this same binary
			others = fmt.Sprintf("--backend %s runs it in virtual time", Sim)
		}
		return Choice{Backend: Soft, Builder: builders[Soft],
			Why: fmt.Sprintf("backend %s: %s, because the %s backend can't be had here: %v (%s)", Soft, what[Soft], Kernel, kernel, others)}, nil
	}
	if builders[Kernel] != nil || runtime.GOOS == "linux" {
		return chooseKernel(ctx, s, fmt.Sprintf("backend %s: it runs verbs on a real kernel", Kernel), false)
	}
	if sim := capable(ctx, Sim); sim != nil {
		return Choice{}, fmt.Errorf("%w: %w", ErrIncapable, sim)
	}
	return Choice{Backend: Sim, Builder: builders[Sim], Why: fmt.Sprintf("backend %s: %s; the others need Linux", Sim, what[Sim])}, nil
}

// capable says why this machine, or this binary, can't run a backend.
func capable(ctx context.Context, name Backend) error {
	b := builders[name]
	if b == nil {
		if name == Kernel {
			return errNotBuilt
		}
		return fmt.Errorf("this rocebed has no %s backend on %s", name, runtime.GOOS)
	}
	if err := b.Built(); err != nil {
		return err
	}
	return b.Capable(ctx)
}

// capableOf says why this machine's kernel can't run a scenario.
func capableOf(ctx context.Context, s *Scenario) error {
	if err := capable(ctx, Kernel); err != nil {
		return err
	}
	if lacks := builders[Kernel].Lacks; lacks != nil {
		return lacks(s)
	}
	return nil
}

// chooseKernel takes this machine's kernel where it can, else the guest's.
func chooseKernel(ctx context.Context, s *Scenario, asked string, guest bool) (Choice, error) {
	b := builders[Kernel]
	if b != nil {
		if err := b.Built(); err != nil { // a guest would run this same binary
			return Choice{}, fmt.Errorf("%w: %w", ErrIncapable, err)
		}
	}
	if guest {
		return Choice{Backend: Kernel, Guest: true, Builder: b, Why: asked + "; in the guest, as asked"}, nil
	}
	incapable := capableOf(ctx, s)
	if incapable == nil {
		return Choice{Backend: Kernel, Builder: b, Why: asked + "; on this machine's kernel, which has all that it needs (--guest runs it in a microVM instead)"}, nil
	}
	return Choice{Backend: Kernel, Guest: true, Builder: b,
		Why: fmt.Sprintf("%s; in the guest, because this machine's kernel can't: %v (rocebed doctor says what is missing)", asked, incapable)}, nil
}

var errNotBuilt = errors.New("this rocebed was built without the kernel backend, which needs Linux, cgo and libibverbs' headers")
