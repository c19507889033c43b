package testbed

import "github.com/rocebed/rocebed/topo"

// plannedNode is a node of plan.json.
type plannedNode struct {
	Node   string          `json:"node"`
	Ports  []topo.PlanPort `json:"ports"`
	Routes []topo.Route    `json:"routes"`
}

// planView is what a record keeps of a plan: every port's addresses and every node's routes.
func planView(p *topo.Plan) []plannedNode {
	var out []plannedNode
	for _, name := range p.Topology.NodeNames() {
		out = append(out, plannedNode{Node: name, Ports: p.Ports(name), Routes: p.Routes(name)})
	}
	return out
}
