package testbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/topo/strict"
)

const good = `apiVersion: rocebed/v1
name: demo
dilation: 1024
topology:
  spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 2}
workloads:
  - name: w
    kind: write
    from: [h1]
    to: [h3]
    messages: 8
faults:
  - name: lossy
    kind: loss
    at: ["leaf1-spine*"]
    probability: 1%
expect:
  - 'workloads["w"].errors == 0'
  - 'delta("out_of_seq_request", {"node": "h1"}) == 0'
`

func TestAGoodScenarioIsReadWhole(t *testing.T) {
	s, err := Parse("demo.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if s.Backend != Auto || s.Dilation != 1024 || s.Seed != 1 || len(s.programs) != 2 || len(s.Topology.Nodes) != 8 || s.Plan == nil {
		t.Errorf("got %+v", s)
	}
}

// Each line is a change to the good scenario and where its error must be.
func TestAnErrorHasItsPlaceAndASuggestion(t *testing.T) {
	for _, c := range []struct{ old, new, place, text string }{
		{"rocebed/v1", "rocebed/v9", "1:1", "write rocebed/v1"},
		{"name: demo", "name: De mo", "2:1", "is not a name"},
		{"name: demo", "nmae: demo", "2:1", `did you mean "name"`},
		{"dilation: 1024", "dilation: 1000", "3:11", "power of two"},
		{"hosts_per_leaf: 2", "host_per_leaf: 2", "5:38", `did you mean "hosts_per_leaf"`},
		{"from: [h1]", "from: [h9]", "9:5", `"h9" selects no host`},
		{"kind: write", "kind: wirte", "8:5", `did you mean "write"`},
		{"probability: 1%", "probability: 101%", "16:18", "share between"},
		{"at: [\"leaf1-spine*\"]", "at: [\"leef1-spine1\"]", "15:5", "leef1"},
		{"kind: loss", "kind: lost", "14:5", `did you mean "loss"`},
		{`workloads["w"].errors`, `workloads["v"].errors`, "18:16", `there is no workload "v" in this scenario (did you mean "w"?)`},
		{`"out_of_seq_request"`, `"out_of_seq_requests"`, "19:12", `did you mean "out_of_seq_request"`},
		{`"node": "h1"`, `"node": "h7"`, "19:43", `there is no node "h7"`},
		{"kind: loss", "kind: loss\n    name: again", "15:5", "given twice"},
		{"faults:", "nics: {rdma: sharde}\nfaults:", "12:8", `did you mean "shared"`},
		{"faults:", "switches: {ecn: {kmin: 9KB, kmax: 5KB, pmax: 1%}}\nfaults:", "12:18", "below kmax"},
		{"faults:", "switches: {watchdog: {detect: 1ms}}\nfaults:", "12:12", "a port that nobody pauses needs no watchdog"},
		{"faults:", "switches: {pfc: {}, override: [{node: leaf1, memory: 1MB, pfc: {headroom: 2MB}}]}\nfaults:", "12:46", "reserves and headroom of 4 ports take 8"},
		{"faults:", "switches: {alpha: 1/2}\nfaults:", "12:12", "give memory or pfc"},
		{"dilation: 1024", "backend: karnel", "3:10", `did you mean "kernel"`},
	} {
		source := strings.Replace(good, c.old, c.new, 1)
		_, err := Parse("demo.yaml", []byte(source))
		var ps strict.Problems
		if !errors.As(err, &ps) {
			t.Errorf("%s: want problems, got %v", c.new, err)
			continue
		}
		at := func(p *strict.Problem) bool {
			return fmt.Sprintf("%d:%d", p.Line, p.Col) == c.place && strings.Contains(p.Error(), c.text)
		}
		if !slices.ContainsFunc(ps, at) || len(ps) > 2 {
			t.Errorf("%s: want %s %q, got\n%v", c.new, c.place, c.text, err)
		}
	}
}

func TestAllThatIsWrongIsSaidAtOnce(t *testing.T) {
	source := strings.NewReplacer("kind: write", "kind: wirte", "probability: 1%", "probability: 2", `["w"]`, `["x"]`, "messages: 8", "mesages: 8").Replace(good)
	source += "extra: 1\n"
	_, err := Parse("demo.yaml", []byte(source))
	var ps strict.Problems
	if !errors.As(err, &ps) {
		t.Fatal(err)
	}
	var lines []int
	for _, p := range ps {
		lines = append(lines, p.Line)
	}
	if fmt.Sprint(lines) != "[11 16 18 20]" {
		t.Errorf("problems on lines %v:\n%v", lines, err)
	}
}

func TestTheScenariosThatShipAreSound(t *testing.T) {
	all, err := filepath.Glob("../scenarios/*.yaml")
	if err != nil || len(all) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range all {
		if _, err := Load(path); err != nil {
			t.Error(err)
		}
	}
}

func FuzzParseNeverPanics(f *testing.F) {
	f.Add([]byte(good))
	if b, err := os.ReadFile("../scenarios/quickstart.yaml"); err == nil {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		s, err := Parse("fuzz.yaml", source)
		if (s == nil) == (err == nil) {
			t.Errorf("scenario %v and error %v", s, err)
		}
		var ps strict.Problems
		if err != nil && !errors.As(err, &ps) {
			t.Errorf("an error without a place: %v", err)
		}
	})
}

// Every complete scenario in the documentation is one that can be copied.
func TestTheScenariosInTheDocsAreSound(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range strings.Split(string(text), "```yaml\n")[1:] {
			source, _, _ := strings.Cut(block, "```")
			if !strings.HasPrefix(source, "apiVersion:") {
				continue
			}
			found++
			if _, err := Parse(fmt.Sprintf("%s block %d", page, i+1), []byte(source)); err != nil {
				t.Error(err)
			}
		}
	}
	if found == 0 {
		t.Error("no scenario in the documentation")
	}
}

func TestAZeroThatWouldMeanADefaultIsAProblemAtItsPlace(t *testing.T) {
	const head = "apiVersion: rocebed/v1\nname: zero\n"
	const star = "topology:\n  star: {hosts: 2}\n"
	for text, want := range map[string]string{
		head + star + "  rate: 0Gbps\n":  "5:9: topology.rate: must be above 0",
		head + star + "  rate: 0.1bps\n": "5:9: topology.rate: must be above 0",
		head + star + "workloads:\n- {name: a, kind: write, from: [h1], to: [h2], messages: 1, size: 0}\n":   "6:67: workloads[0].size: must be above 0",
		head + star + "workloads:\n- {name: a, kind: write, from: [h1], to: [h2], duration: 9999999999ms}\n": "is longer than anything here may last (1000h0m0s)",
	} {
		if _, err := Parse("zero.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngives: %v\nwant: %s", text, err, want)
		}
	}
	if _, err := Parse("zero.yaml", []byte(head+star+"  delay: 0\n")); err != nil {
		t.Errorf("a delay of 0 is a delay: %v", err)
	}
}

func TestAFileThatIsNoYAMLHasThatOneProblem(t *testing.T) {
	for text, place := range map[string]string{
		"apiVersion: rocebed/v1\nname: x\n  seed: 4\n": "bad.yaml:2:",
		"": "bad.yaml:1:1: ", "{": "bad.yaml:1:",
		"apiVersion: rocebed/v1\nname: [a\n": "bad.yaml:2:",
	} {
		_, err := Parse("bad.yaml", []byte(text))
		var ps strict.Problems
		if !errors.As(err, &ps) || len(ps) != 1 || !strings.HasPrefix(err.Error(), place) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAScenarioThatNothingWouldEndIsRefused(t *testing.T) {
	text := "apiVersion: rocebed/v1\nname: endless\ntopology:\n  star: {hosts: 2}\nfaults:\n- name: a\n  kind: loss\n  at: [leaf1]\n  probability: 1%\n" +
		"  schedule: {at: 1ms, for: 1ms, every: 5ms}\n"
	if _, err := Parse("endless.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "endless.yaml:10:33: it comes back for ever") {
		t.Errorf("got %v", err)
	}
	for _, fixed := range []string{strings.Replace(text, "5ms}", "5ms, count: 3}", 1), text + "workloads:\n- {name: w, kind: write, from: [h1], to: [h2], messages: 1}\n"} {
		if _, err := Parse("fixed.yaml", []byte(fixed)); err != nil {
			t.Errorf("%v", err)
		}
	}
}

func TestATopologyWithoutHostsIsAProblemAtItsPlace(t *testing.T) {
	_, err := Parse("s.yaml", []byte("apiVersion: rocebed/v1\nname: s\ntopology: {dumbbell: {left: 0, right: 0}}\n"))
	if err == nil || err.Error() != "s.yaml:3:1: there is no host in it, so that nothing could run" {
		t.Errorf("%v", err)
	}
}

func TestRatesThatNoLinkHasAreRefusedWhereTheyStand(t *testing.T) {
	for given, at := range map[string]string{
		"nics: {dcqcn: {profile: paper, rpg_min_rate: 100Gbps}}\n":                                   "nics.dcqcn",
		"nics: {override: [{node: h2, dcqcn: {profile: paper, rate_to_set_on_first_cnp: 1Tbps}}]}\n": "nics.override[0].dcqcn",
		"nics: {dcqcn: {profile: paper, rpg_min_rate: 10Gbps}}\n":                                    "",
	} {
		_, err := Parse("s.yaml", []byte("apiVersion: rocebed/v1\nname: s\ntopology: {star: {hosts: 3}, rate: 10Gbps}\n"+given+"workloads: [{name: a, kind: write, from: [h1], to: [h3], duration: 1ms}]\n"))
		var ps strict.Problems
		if at == "" && err == nil {
			continue
		}
		if !errors.As(err, &ps) || len(ps) != 1 || ps[0].Path != at || !strings.Contains(err.Error(), "line rate 10Gbps") {
			t.Errorf("%s: %v", given, err)
		}
	}
}
