package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/guest"
	"github.com/rocebed/rocebed/testbed/kernel"
)

func TestDoctorSaysWhereTheBackendRunsAndHowToGetWhatIsMissing(t *testing.T) {
	missing := kernel.Feature{Name: "netem", Level: kernel.Needed, Why: "unknown qdisc", For: "delay", Cost: "no backend here", Get: "modprobe sch_netem"}
	there := kernel.Feature{Name: "qemu", Level: kernel.Needed, Present: true, For: "the guest"}
	optional := kernel.Feature{Name: "kvm", Level: kernel.Useful, Why: "no /dev/kvm", For: "speed", Cost: "slower", Get: "hardware"}
	for _, c := range []struct {
		features, guest []kernel.Feature
		kernel, inGuest bool
		want            string
	}{
		{[]kernel.Feature{there}, []kernel.Feature{missing}, true, false, "on this machine's own kernel"},
		{[]kernel.Feature{missing}, []kernel.Feature{there, optional}, false, true, "runs in the guest"},
		{[]kernel.Feature{missing}, []kernel.Feature{missing}, false, false, "nowhere yet"},
		{[]kernel.Feature{missing, {Name: kernel.Libibverbs, Level: kernel.Needed}}, []kernel.Feature{there}, false, false, "nowhere yet"},
	} {
		d := diagnosis{Features: c.features, GuestFeatures: c.guest}
		d.judge()
		if d.Kernel != c.kernel || d.Guest != c.inGuest {
			t.Errorf("%+v: kernel %v, guest %v", c, d.Kernel, d.Guest)
		}
		var b bytes.Buffer
		if err := d.print(&b); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), c.want) || !strings.Contains(b.String(), "modprobe sch_netem") {
			t.Errorf("doctor said %s", b.String())
		}
	}
}

func TestDoctorSaysOfEachBackendWhetherItRunsAndWhere(t *testing.T) {
	d := diagnosis{Guest: true, Backends: []testbed.Ability{
		{Backend: testbed.Kernel, How: "rxe", Why: "no rdma_rxe"}, {Backend: testbed.Soft, How: "veths", Why: "no user namespaces"}, {Backend: testbed.Sim, Can: true, How: "in memory"}}}
	said := func() string {
		var b bytes.Buffer
		if err := d.print(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, want := range []string{"kernel  guest    in a microVM, because this machine's kernel can't: no rdma_rxe", "soft    no       no user namespaces", "sim     ok       in memory"} {
		if !strings.Contains(said(), want) {
			t.Errorf("no %q in\n%s", want, said())
		}
	}
	if d.Guest = false; !strings.Contains(said(), "kernel  no       no rdma_rxe") {
		t.Error(said())
	}
	for _, a := range testbed.Abilities(t.Context()) {
		if a.How == "" || a.Can != (a.Why == "") || a.Backend == testbed.Sim && !a.Can {
			t.Errorf("%+v", a)
		}
	}
}

func TestDoctorBelievesWhatBecameOfAGuestMoreThanTheDevice(t *testing.T) {
	day := time.Date(2026, 11, 29, 20, 0, 0, 0, time.UTC)
	died := guest.Accelerator{Accel: "tcg", When: day, Why: "QEMU ended: failed to set MSR 0x48e", File: "/cache/accel.json"}
	for name, c := range map[string]struct {
		opens   error
		known   guest.Accelerator
		tried   bool
		present bool
		want    []string
	}{
		"a guest died":         {nil, died, true, false, []string{"a guest died under it on 2026-11-29 20:00:00", "MSR 0x48e", "TCG is used", "remove /cache/accel.json"}},
		"a guest came up":      {nil, guest.Accelerator{Accel: "kvm", When: day}, true, true, []string{"came up on 2026-11-29"}},
		"nothing was tried":    {nil, guest.Accelerator{}, false, true, []string{"the first guest will show"}},
		"there is no device":   {errors.New("no such device"), died, true, false, []string{"no such device"}},
		"a memory from before": {nil, guest.Accelerator{Accel: "tcg", File: "/f"}, true, false, []string{"at an earlier boot", "remove /f"}},
	} {
		f := kvmFeature(c.opens, c.known, c.tried)
		text := f.For + " " + f.Why + " " + f.Get
		if f.Present != c.present {
			t.Errorf("%s: present %v", name, f.Present)
		}
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in %q", name, w, text)
			}
		}
	}
}
