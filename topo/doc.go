// Package topo says what a fabric is: nodes, ports, links, addresses and routes.
//
// It is pure data and arithmetic: it touches no operating system and imports no other
// room of rocebed. A topology comes in as generator parameters or as YAML and goes out
// as a Topology and, with addresses and next hops worked out, as a Plan.
package topo
