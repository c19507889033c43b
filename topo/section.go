package topo

import "github.com/rocebed/rocebed/topo/strict"

// section is a scenario file of which only the topology is looked at: the rest may be
// unfinished, or missing altogether.
type section struct {
	Topology Spec `yaml:"topology,required"`

	APIVersion any `yaml:"apiVersion"`
	Name       any `yaml:"name"`
	Seed       any `yaml:"seed"`
	Backend    any `yaml:"backend"`
	Dilation   any `yaml:"dilation"`
	NICs       any `yaml:"nics"`
	Switches   any `yaml:"switches"`
	Workloads  any `yaml:"workloads"`
	Faults     any `yaml:"faults"`
	Expect     any `yaml:"expect"`
}

// FromScenario plans the topology of a scenario file, whatever its other sections hold. The
// topology is called what it says, else what the scenario is called, else its shape. Errors
// have their places in the file, as strict.Problems.
func FromScenario(file string, data []byte) (*Plan, error) {
	var s section
	doc, err := strict.Read(file, data, &s)
	if err != nil {
		return nil, err
	}
	if name, ok := s.Name.(string); ok && s.Topology.Name == "" && CheckName(name) == nil {
		s.Topology.Name = name
	}
	t, err := s.Topology.Build()
	if err != nil {
		return nil, doc.Locate("topology", err)
	}
	p, err := t.Plan(s.Topology.PlanOptions())
	return p, doc.Locate("topology", err)
}
