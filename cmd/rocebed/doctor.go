package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/rocebed/rocebed/images"
	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/guest"
	"github.com/rocebed/rocebed/testbed/kernel"
	"github.com/spf13/cobra"
)

// diagnosis is what doctor found out.
type diagnosis struct {
	// Backends say what each backend can on this machine itself.
	Backends []testbed.Ability `json:"backends"`
	// Kernel says whether the kernel backend runs on this machine's own kernel, Guest whether it
	// runs in a microVM.
	Kernel bool `json:"kernel"`
	Guest  bool `json:"guest"`
	// Features are tried on this machine's kernel.
	Features []kernel.Feature `json:"features"`
	// GuestFeatures are what booting a microVM takes.
	GuestFeatures []kernel.Feature `json:"guest_features"`
	// Dead are testbeds whose keeper, or whose run, has died and left them on this machine.
	Dead []remain `json:"dead_testbeds"`
	// Unseen is why testbeds can't be looked at: they are root's.
	Unseen string `json:"testbeds_unseen,omitempty"`
}

// remain is a testbed that nobody holds any more.
type remain struct {
	Testbed string `json:"testbed"`
	Left    int    `json:"left"` // things that it left on the machine
	Get     string `json:"get"`  // what removes them
}

func newDoctorCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can do, what is missing, what that costs and how to get it",
		Long: `Say which backends run on this machine. Then try every feature that rocebed uses by using it, in a network namespace of its own that is gone afterwards,
and say what is missing, what that costs and how to get it. Nothing on the machine is changed, except that the kernel may
load modules. It warns of testbeds whose keeper, or whose run, has died and left something behind.

Exit code 0: the kernel backend runs here, on this machine's kernel or in the guest. 3: it runs nowhere yet; the others may.`,
		Example: "  sudo rocebed doctor\n  sudo rocebed doctor --json | jq '.features[] | select(.present | not)'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := diagnose(cmd.Context())
			if asJSON {
				e := json.NewEncoder(os.Stdout)
				e.SetIndent("", "  ")
				if err := e.Encode(d); err != nil {
					return err
				}
			} else if err := d.print(os.Stdout); err != nil {
				return err
			}
			if !d.Kernel && !d.Guest {
				return exitCode(exitMachine)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func diagnose(ctx context.Context) diagnosis {
	if ctx == nil {
		ctx = context.Background()
	}
	d := diagnosis{Backends: testbed.Abilities(ctx), Features: kernel.Probe(ctx), GuestFeatures: guestFeatures()}
	d.judge()
	d.Dead, d.Unseen = remains()
	return d
}

// judge says where the backend runs. What the binary lacks, it lacks in the guest too.
func (d *diagnosis) judge() {
	d.Kernel, d.Guest = complete(d.Features), complete(d.GuestFeatures)
	for _, f := range d.Features {
		if f.Name == kernel.Libibverbs && !f.Present {
			d.Guest = false
		}
	}
}

// complete says whether nothing that is needed is missing.
func complete(features []kernel.Feature) bool {
	for _, f := range features {
		if f.Level == kernel.Needed && !f.Present {
			return false
		}
	}
	return true
}

// guestFeatures are what booting the guest takes of this machine.
func guestFeatures() []kernel.Feature {
	const noGuest = "no guest: the kernel backend runs only where this machine's own kernel can do it"
	found := func(f kernel.Feature, err error) kernel.Feature {
		f.Present = err == nil
		if err != nil {
			f.Why = err.Error()
		}
		return f
	}
	_, qemu := exec.LookPath("qemu-system-x86_64")
	img, image := images.Find(images.Options{})
	if image == nil && img == nil {
		image = fmt.Errorf("no image in the cache fits this machine as it is now")
	}
	kvm, kvmErr := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if kvmErr == nil {
		kvmErr = kvm.Close()
	}
	known, tried := guest.Remembered(img, "")
	return []kernel.Feature{
		found(kernel.Feature{Name: "qemu", Level: kernel.Needed, For: "the microVM that brings the kernel which this machine lacks",
			Cost: noGuest, Get: "Debian package qemu-system-x86, or make setup"}, qemu),
		found(kernel.Feature{Name: "image", Level: kernel.Needed, For: "the guest's kernel and programs",
			Cost: noGuest, Get: "rocebed image build, or make setup"}, image),
		kvmFeature(kvmErr, known, tried),
	}
}

// kvmFeature is whether guests run under KVM. That /dev/kvm opens says little: a hypervisor below
// may not let a guest live. So what counts is what became of the first guest.
func kvmFeature(opens error, known guest.Accelerator, tried bool) kernel.Feature {
	f := kernel.Feature{Name: "kvm", Level: kernel.Useful, Present: true, For: "a guest at the machine's own speed",
		Cost: "the guest is emulated, about 20 times slower", Get: "a machine, or a hypervisor, that has /dev/kvm"}
	when := "on " + known.When.Format(time.DateTime)
	if known.When.IsZero() {
		when = "at an earlier boot"
	}
	switch {
	case opens != nil:
		f.Present, f.Why = false, opens.Error()
	case !tried:
		f.For += "; /dev/kvm opens, the first guest will show whether one lives under it"
	case known.Accel == "kvm":
		f.For += "; one came up " + when
	default:
		f.Present = false
		f.Why = fmt.Sprintf("/dev/kvm opens, but a guest died under it %s, so TCG is used", when)
		if known.Why != "" {
			f.Why += ": " + known.Why
		}
		f.Get = fmt.Sprintf("a hypervisor on which nested guests live; to try again, remove %s", known.File)
	}
	return f
}

func (d diagnosis) print(w io.Writer) error {
	p := &lines{w: w}
	d.backends(p)
	p.table("This machine's kernel", d.Features)
	p.table("The guest", d.GuestFeatures)
	d.remains(p)
	switch {
	case d.Kernel:
		p.line("The kernel backend runs on this machine's own kernel.")
	case d.Guest:
		p.line("The kernel backend runs in the guest: this machine's own kernel lacks something (above).")
	default:
		p.line("The kernel backend runs nowhere yet: get what is missing above, for this kernel or for the guest.")
	}
	return p.err
}

// backends says of each whether it runs, and where.
func (d diagnosis) backends(p *lines) {
	p.line("Backends")
	for _, b := range d.Backends {
		mark, text := "ok", b.How
		switch {
		case b.Can:
		case b.Backend == testbed.Kernel && d.Guest:
			mark, text = "guest", "in a microVM, because this machine's kernel can't: "+b.Why
		default:
			mark, text = "no", b.Why
		}
		p.line("  %-6s  %-7s  %s", b.Backend, mark, text)
	}
	p.line("")
}

// remains warns of testbeds that died.
func (d diagnosis) remains(p *lines) {
	if len(d.Dead) == 0 && d.Unseen == "" {
		return
	}
	p.line("Testbeds")
	for _, r := range d.Dead {
		p.line("  %s  DEAD     its keeper, or its run, has died and left %d things on this machine", r.Testbed, r.Left)
		p.line("%s           get:  %s", strings.Repeat(" ", len(r.Testbed)), r.Get)
	}
	if d.Unseen != "" {
		p.line("  not looked at: %s", d.Unseen)
	}
	p.line("")
}

// lines writes lines and keeps the first error.
type lines struct {
	w   io.Writer
	err error
}

func (p *lines) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// table lists features; for one that is missing, also why, what that costs and how to get it.
func (p *lines) table(title string, features []kernel.Feature) {
	p.line("%s", title)
	width := 0
	for _, f := range features {
		width = max(width, len(f.Name))
	}
	for _, f := range features {
		mark := "ok"
		switch {
		case !f.Present && f.Level == kernel.Needed:
			mark = "MISSING"
		case !f.Present:
			mark = "missing"
		}
		p.line("  %-*s  %-7s  %s", width, f.Name, mark, f.For)
		if !f.Present {
			indent := strings.Repeat(" ", width+4)
			p.line("%s         why:  %s", indent, f.Why)
			p.line("%s         cost: %s", indent, f.Cost)
			p.line("%s         get:  %s", indent, f.Get)
		}
	}
	p.line("")
}
