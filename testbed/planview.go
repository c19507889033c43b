package testbed

import "github.com/rocebed/rocebed/topo"

// plannedNode is a node of plan.json.
type plannedNode struct {
	Node   string          `json:"node"`
	Ports  []topo.PlanPort `json:"ports"`
	Routes []topo.Route    `json:"routes"`
	// Tables are those that a host of several NICs has for each of them.
	Tables []topo.PolicyTable `json:"tables,omitempty"`
}

// planView is what a record keeps of a plan: every port's addresses and every node's routes.
func planView(p *topo.Plan) []plannedNode {
	var out []plannedNode
	for _, name := range p.Topology.NodeNames() {
		out = append(out, plannedNode{Node: name, Ports: p.Ports(name), Routes: p.Routes(name), Tables: p.PolicyTables(name)})
	}
	return out
}
