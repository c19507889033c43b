package testbed

import (
	"strings"
	"testing"
)

const inGroups = `apiVersion: rocebed/v1
name: groups
seed: %s
topology:
  spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 2}
workloads:
  - {name: w, kind: all-pairs, from: ["*"], duration: 4ms}
faults:
`

// faultsOf runs faults beside traffic in virtual time.
func faultsOf(t *testing.T, seed, text string) *Outcome {
	t.Helper()
	out, _ := runInSim(t, t.Context(), strings.Replace(inGroups, "%s", seed, 1)+text, RunOptions{})
	if !out.Passed() {
		t.Fatalf("%s: problems %q", text, out.Summary.Problems)
	}
	return out
}

func TestAStormAGroupAndARampStrikeAndHeal(t *testing.T) {
	out := faultsOf(t, "3", `
  - {name: soak, at: ["leaf*:*"], storm: {kinds: [loss, delay, duplicate, corrupt], rate: 10/ms, duration: 3ms}}
  - {name: both, at: ["leaf1-spine*"], schedule: {at: 1ms}, parallel: [{kind: loss, probability: 2%, schedule: {for: 1ms}}, {name: late, kind: delay, delay: 3us, schedule: {at: 1ms, for: 1ms}}]}
  - {name: worse, kind: loss, at: ["path=h1>h3"], probability: 1%, schedule: {at: 1ms, for: 2ms, ramp: {to: 5%, steps: 4}}}
  - {name: one, kind: loss, at: ["leaf*-spine*"], random: 1, probability: 2%}
`)
	strikes := map[string]int{}
	for _, f := range out.Summary.Faults {
		group, _, _ := strings.Cut(f.Name, "/")
		strikes[group] += f.Strikes
		if !f.Healed || !f.Verified {
			t.Errorf("%s: %+v", f.Name, f)
		}
	}
	if strikes["soak"] < 10 || strikes["both"] != 2 || strikes["worse"] != 4 || strikes["one"] != 1 {
		t.Errorf("they struck %v times; want tens of the storm's, both of the group, four steps, one", strikes)
	}
	for _, f := range out.Summary.Faults {
		if f.Name == "one" && len(f.At) != 1 {
			t.Errorf("the one that was drawn is not named: %v", f.At)
		}
	}
}

func TestWhatFaultsCannotBeTogetherIsSaidBeforeTheRun(t *testing.T) {
	for text, want := range map[string]string{
		"  - {name: a, kind: down, at: [leaf1-spine1]}\n  - {name: b, kind: flap, at: [spine1], period: 4ms, down: 1ms}\n": `test.yaml:10:27: spine1:eth0: fault a is in force there at the same time, and down and flap both set the link's carrier`,
		"  - {name: a, at: [leaf1], sequence: [{kind: down}, {kind: down}]}\n":                                             `it never ends`,
		"  - {name: a, kind: down, at: [leaf1], schedule: {when: workload v started}}\n":                                   `there is no workload "v" (did you mean "w"?)`,
		"  - {name: a, kind: down, at: [leaf1], schedule: {when: first cnp at h9}}\n":                                      `there is no node "h9"`,
		"  - {name: a, kind: qp-kill, at: [h1], workload: v}\n":                                                            `workload "v" (did you mean "w"?)`,
		"  - {name: a, kind: packets, at: [h1], events: [{match: {workload: 'v*'}, do: drop}]}\n":                          `there is no workload "v*"`,
		"  - {name: a, kind: down, at: ['flow=v']}\n":                                                                      `there is no workload "v" (did you mean "w"?)`,
		"  - {name: a, kind: reboot, down: 1ms, at: [h1]}\n":                                                               `"h1" selects no switch, which is what a reboot strikes`,
	} {
		_, err := Parse("test.yaml", []byte(strings.Replace(inGroups, "%s", "1", 1)+text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
