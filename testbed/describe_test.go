package testbed

import (
	"strings"
	"testing"
)

func TestTheLayoutShowsWhatHangsOnEachSwitch(t *testing.T) {
	s, err := Load("../scenarios/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"spine1 ── leaf1 leaf2   (25Gbps, 1µs, MTU 4200)",
		"spine2 ── leaf1 leaf2   (25Gbps, 1µs, MTU 4200)",
		"leaf1 ── h1 h2 h3 h4   (25Gbps, 1µs, MTU 4200)",
		"leaf2 ── h5 h6 h7 h8   (25Gbps, 1µs, MTU 4200)",
	}
	if got := Layout(s.Plan); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}
