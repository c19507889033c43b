package testbed

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/expect"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/sim"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
	"github.com/rocebed/rocebed/workloads"
)

// checker gathers everything that is wrong with a scenario. A part that did not decode is not
// judged further: what follows from a misspelt key would only hide it.
type checker struct {
	s        *Scenario
	f        *file
	problems strict.Problems
	unmade   []string // names of faults that are wrong: who speaks of them isn't
}

// take adds err's problems, placed under path where they have no place yet.
func (c *checker) take(path string, err error) {
	if err == nil {
		return
	}
	var ps strict.Problems
	if errors.As(c.s.doc.Locate(path, err), &ps) {
		c.problems = append(c.problems, ps...)
	}
}

func (c *checker) wrong(path, format string, args ...any) {
	c.problems = append(c.problems, c.s.doc.Errorf(path, format, args...))
}

func (c *checker) err() error {
	if len(c.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(c.problems, func(a, b *strict.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return c.problems
}

// sound says that nothing at path or below it is wrong so far.
func (c *checker) sound(path string) bool {
	return !slices.ContainsFunc(c.problems, func(p *strict.Problem) bool {
		rest, under := strings.CutPrefix(p.Path, path)
		return under && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// given says that the key is there and sound. That one is missing has been said.
func (c *checker) given(key string) bool { return c.s.doc.Has(key) && c.sound(key) }

var scenarioName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$`)

func (c *checker) check() {
	s, f := c.s, c.f
	if c.given("apiVersion") && f.APIVersion != APIVersion {
		c.wrong("apiVersion", "%q is not a version that this rocebed reads: write %s", f.APIVersion, APIVersion)
	}
	if c.given("name") && !scenarioName.MatchString(f.Name) {
		c.wrong("name", "%q is not a name: small letters, digits, '-', '.' and '_', at most 64", f.Name)
	}
	if c.sound("nics") {
		if err := s.NICs.Validate(); err != nil {
			c.take("nics", err)
		} else {
			c.take("", sim.CheckNICs(&s.NICs))
		}
	}
	if c.sound("switches") {
		c.take("switches", s.Switches.Validate())
	}
	if c.given("topology") {
		var err error
		if s.Topology, err = f.Topology.Build(); err == nil {
			s.Plan, err = s.Topology.Plan(f.Topology.PlanOptions())
		}
		c.take("topology", err)
		if err == nil && !slices.ContainsFunc(s.Topology.Nodes, func(n topo.Node) bool { return n.Role == topo.Host }) {
			c.wrong("topology", "there is no host in it, so that nothing could run")
		}
	}
	if s.Topology != nil && c.sound("nics") && c.sound("switches") {
		c.take("", (&fabric.Settings{NICs: s.NICs, Switches: s.Switches}).CheckNodes(s.Topology))
	}
	if s.Plan != nil && c.sound("switches") {
		c.take("", sim.CheckSwitches(s.Plan, &s.Switches))
	}
	if s.Plan != nil && c.sound("nics") {
		c.lines()
	}
	c.workloads()
	c.faults()
	c.expect()
}

// lines holds the rates of each NIC's DCQCN against its link's.
func (c *checker) lines() {
	for _, nic := range c.s.Topology.NICs() {
		m := c.s.NICs.Of(nic.Node)
		if m.DCQCN == nil {
			continue
		}
		at := c.s.NICs.Section(nic.Node, func(m *fabric.NICModel) bool { return m.DCQCN != nil }) + ".dcqcn"
		p, err := m.DCQCN.Params()
		if p == nil || err != nil || !c.sound(at) {
			continue
		}
		if _, err := dcqcn.NewReaction(*p, dcqcn.Rate(c.s.Plan.Link(nic).Rate)); err != nil {
			c.wrong(at, "%s: %w", nic, err)
		}
	}
}

// workloads drops what CheckAll says of a workload that did not decode.
func (c *checker) workloads() {
	if c.s.Topology == nil {
		return
	}
	unsound := map[string]bool{}
	for i := range c.s.Workloads {
		path := fmt.Sprintf("workloads[%d]", i)
		unsound[path] = !c.sound(path)
	}
	err := workloads.CheckAll(c.s.Workloads, c.s.Topology)
	if c.s.Plan != nil {
		err = errors.Join(err, workloads.CheckReach(c.s.Workloads, c.s.Topology, c.s.Plan.Reaches))
	}
	var ps strict.Problems
	if !errors.As(c.s.doc.Locate("workloads", err), &ps) {
		return
	}
	for _, p := range ps {
		if item, _, _ := strings.Cut(p.Path, "]"); !unsound[item+"]"] {
			c.problems = append(c.problems, p)
		}
	}
}

func workloadNames(all []workloads.Spec) []string {
	var names []string
	for i := range all {
		names = append(names, all[i].Name)
	}
	return names
}

func faultNames(all []faults.Spec) []string {
	var names []string
	for i := range all {
		names = append(names, all[i].Name)
	}
	return names
}

// expect compiles the expectations. Without a topology node names can't be judged, and
// everything that names one would be wrong for another's fault.
func (c *checker) expect() {
	if !c.sound("expect") || c.s.Topology == nil {
		return
	}
	names := expect.Names{Workloads: workloadNames(c.s.Workloads), Faults: append(faultNames(c.s.Faults), c.unmade...), Metrics: metrics.Standard}
	for i := range c.s.Topology.Nodes {
		names.Nodes = append(names.Nodes, c.s.Topology.Nodes[i].Name)
	}
	var err error
	if c.s.env, err = expect.NewEnv(names); err != nil {
		c.take("expect", err)
		return
	}
	for i, text := range c.s.Expect {
		path := fmt.Sprintf("expect[%d]", i)
		program, problems := c.s.env.Compile(text)
		for _, p := range problems {
			c.expectation(path, p)
		}
		c.s.programs = append(c.s.programs, program)
	}
}

// expectation reports a problem inside an expression at its own place in the file, where the
// expression stands on one line.
func (c *checker) expectation(path string, p expect.Problem) {
	at := c.s.doc.Errorf(path, "%w", p)
	lines := strings.Split(string(c.s.Source), "\n")
	if at.Line >= 1 && at.Line <= len(lines) && p.Line == 1 {
		line := []rune(lines[at.Line-1])
		if at.Col >= 1 && at.Col <= len(line) {
			switch line[at.Col-1] {
			case '|', '>':
			case '"', '\'':
				at.Col += p.Column
			default:
				at.Col += p.Column - 1
			}
		}
	}
	c.problems = append(c.problems, at)
}
