package main

import (
	"bytes"
	"strings"
	"testing"

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
