package testbed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
)

// Builder brings fabrics up on one backend. It is registered by the file that builds where
// the backend works.
type Builder struct {
	Backend Backend
	// Built says why this binary can't on any machine, in a guest as little as here; nil when it can.
	Built func() error
	// Capable says why this machine can't, and how to change that; nil when it can.
	Capable func(ctx context.Context) error
	// CheckName says whether a testbed may be called that.
	CheckName func(testbed string) error
	// Check refuses what of a scenario the backend can't do at a dilation, before anything is
	// created: node kinds, features, faults. Its errors are strict.PathErrors from the scenario's top.
	Check func(s *Scenario, d loop.Dilation) error
	// Calibrate is the smallest dilation at which this machine carries the scenario.
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
	if want == Soft || want == Sim {
		return Choice{}, fmt.Errorf("%w: this rocebed has no %s backend: use --backend %s, which runs on rdma_rxe here or in the guest", ErrIncapable, want, Kernel)
	}
	asked := fmt.Sprintf("backend %s, as asked", Kernel)
	if want == Auto {
		asked = fmt.Sprintf("backend %s: it runs verbs on a real kernel", Kernel)
	}
	b := builders[Kernel]
	if b != nil {
		if err := b.Built(); err != nil { // a guest would run this same binary
			return Choice{}, fmt.Errorf("%w: %w", ErrIncapable, err)
		}
	}
	if guest {
		return Choice{Backend: Kernel, Guest: true, Builder: b, Why: asked + "; in the guest, as asked"}, nil
	}
	var incapable error
	switch {
	case b == nil:
		incapable = errNotBuilt
	default:
		incapable = b.Capable(ctx)
	}
	if incapable == nil {
		return Choice{Backend: Kernel, Builder: b, Why: asked + "; on this machine's kernel, which has all that it needs (--guest runs it in a microVM instead)"}, nil
	}
	return Choice{Backend: Kernel, Guest: true, Builder: b,
		Why: fmt.Sprintf("%s; in the guest, because this machine's kernel can't: %v (rocebed doctor says what is missing)", asked, incapable)}, nil
}

var errNotBuilt = errors.New("this rocebed was built without the kernel backend, which needs Linux, cgo and libibverbs' headers")
