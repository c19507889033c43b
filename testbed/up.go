package testbed

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
)

// UpOptions are what bringing a fabric up takes besides its scenario.
type UpOptions struct {
	Backend  Backend   // overrides the scenario's, unless empty
	Dilation *Dilation // overrides the scenario's
	// Testbed names what is made on the machine. Empty: the scenario's name.
	Testbed string

	Progress Progress     // nil: silent
	Log      *slog.Logger // nil: discarded
}

// Up brings a scenario's fabric up on this machine and runs nothing on it. What was made is
// gone again when it returns an error. Where this machine can't the error is ErrIncapable:
// who wants a guest calls Up inside it.
func Up(ctx context.Context, s *Scenario, opt UpOptions) (fabric.Fabric, Choice, error) {
	if opt.Progress == nil {
		opt.Progress = Silent{}
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Testbed == "" {
		opt.Testbed = s.Name
	}
	if opt.Dilation != nil {
		s.Dilation = *opt.Dilation
	}
	choice, err := Choose(ctx, s, opt.Backend, false)
	switch {
	case err != nil:
		return nil, choice, err
	case choice.Guest:
		return nil, choice, fmt.Errorf("%w: %s", ErrIncapable, choice.Why)
	case choice.Builder.Virtual:
		return nil, choice, fmt.Errorf("%w: the %s backend's time is virtual, so there is nothing to come back to: rocebed run runs a scenario in it", ErrIncapable, choice.Backend)
	}
	if err := choice.check(s, loop.Dilation(s.Dilation)); err != nil {
		return nil, choice, err
	}
	d, err := choice.dilation(ctx, s, opt.Progress)
	if err == nil {
		err = choice.check(s, d)
	}
	if err != nil {
		return nil, choice, err
	}
	for _, p := range choice.doubts(s, d) {
		opt.Progress.Note("warning: " + doubted(p))
	}
	fab, err := choice.build(ctx, s, d, opt.Testbed, opt.Progress, opt.Log)
	return fab, choice, err
}

// check is the builder's Check with its problems placed in the scenario file. Where the backend
// was not built, the guest that is to run the scenario checks it.
func (c Choice) check(s *Scenario, d loop.Dilation) error {
	if c.Builder == nil {
		return nil
	}
	return s.doc.Locate("", c.Builder.Check(s, d))
}

// virtual says that the backend's time is: it has no dilation of its own.
func (c Choice) virtual() bool { return c.Builder != nil && c.Builder.Virtual }

// dilation is the scenario's, or the smallest that the machine sustains.
func (c Choice) dilation(ctx context.Context, s *Scenario, p Progress) (loop.Dilation, error) {
	if c.virtual() {
		return 1, nil
	}
	if s.Dilation != 0 {
		return loop.NewDilation(uint64(s.Dilation))
	}
	p.Step("measuring what this machine sustains")
	d, why, err := c.Builder.Calibrate(ctx, s)
	if err == nil {
		p.Note(fmt.Sprintf("dilation %d: %s", d, why))
	}
	return d, err
}

func (c Choice) build(ctx context.Context, s *Scenario, d loop.Dilation, name string, p Progress, log *slog.Logger) (fabric.Fabric, error) {
	p.Step(fmt.Sprintf("bringing up %s, %s and %s", many(len(s.Topology.Hosts()), "host"), many(len(s.Topology.Switches()), "switch"), many(len(s.Topology.Links), "link")))
	return c.Builder.Build(ctx, BuildConfig{Testbed: name, Scenario: s, Seed: s.Seed, Dilation: d, Log: log, Step: p.Status})
}

// defaultTestbed is the name of a run's testbed: runs of one scenario side by side differ.
func defaultTestbed(s *Scenario) string {
	name := strings.ReplaceAll(s.Name, ".", "-")
	return fmt.Sprintf("%s-%d", name[:min(len(name), 40)], os.Getpid())
}
