package topo

import (
	"cmp"
	"fmt"
	"strings"
)

// String writes a port as "leaf1:eth3".
func (r PortRef) String() string { return r.Node + ":" + r.Port }

// Compare orders ports by node, then by port, numbers by value: leaf2 before leaf10.
func (r PortRef) Compare(o PortRef) int {
	return cmp.Or(CompareNames(r.Node, o.Node), CompareNames(r.Port, o.Port))
}

// MarshalText writes the port as "leaf1:eth3".
func (r PortRef) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads "leaf1:eth3".
func (r *PortRef) UnmarshalText(b []byte) (err error) {
	*r, err = ParsePortRef(string(b))
	return err
}

// ParsePortRef reads "leaf1:eth3". It checks the form, not that the port exists.
func ParsePortRef(s string) (PortRef, error) {
	node, port, ok := strings.Cut(s, ":")
	if !ok || node == "" || port == "" || strings.Contains(port, ":") {
		return PortRef{}, fmt.Errorf("%q is not a port (write \"node:port\", such as \"leaf1:eth0\")", s)
	}
	return PortRef{node, port}, nil
}

// Other is the link's end across from end, which must be one of the link's two.
func (l *Link) Other(end PortRef) PortRef {
	if end == l.A {
		return l.B
	}
	return l.A
}

// Name is "leaf1-spine2", the way a link is spoken of; parallel links share it.
func (l *Link) Name() string { return l.A.Node + "-" + l.B.Node }

// Node finds a node by name; nil: there is none.
func (t *Topology) Node(name string) *Node {
	for i := range t.Nodes {
		if t.Nodes[i].Name == name {
			return &t.Nodes[i]
		}
	}
	return nil
}

// NodeNames are the names of all nodes, in order.
func (t *Topology) NodeNames() []string {
	names := make([]string, len(t.Nodes))
	for i := range t.Nodes {
		names[i] = t.Nodes[i].Name
	}
	return names
}

// Hosts are the nodes that send and receive, in order.
func (t *Topology) Hosts() []*Node { return t.withRole(Host) }

// Switches are the nodes that forward, in order.
func (t *Topology) Switches() []*Node { return t.withRole(Switch) }

func (t *Topology) withRole(r Role) []*Node {
	var out []*Node
	for i := range t.Nodes {
		if t.Nodes[i].Role == r {
			out = append(out, &t.Nodes[i])
		}
	}
	return out
}

// NICs are all hosts' ports, in order.
func (t *Topology) NICs() []PortRef {
	var out []PortRef
	for _, h := range t.Hosts() {
		for _, p := range h.Ports {
			out = append(out, PortRef{h.Name, p.Name})
		}
	}
	return out
}

// LinksBetween are the indices of the links that join nodes a and b, either way round.
func (t *Topology) LinksBetween(a, b string) []int {
	var out []int
	for i := range t.Links {
		l := &t.Links[i]
		if l.A.Node == a && l.B.Node == b || l.A.Node == b && l.B.Node == a {
			out = append(out, i)
		}
	}
	return out
}

// CompareNames orders names as people do: runs of digits by value, the rest by letters.
// Names that differ in leading zeros only are ordered by letters.
func CompareNames(a, b string) int {
	wholeA, wholeB := a, b
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
		if da > 0 && db > 0 {
			na, nb := strings.TrimLeft(a[:da], "0"), strings.TrimLeft(b[:db], "0")
			if c := cmp.Or(cmp.Compare(len(na), len(nb)), strings.Compare(na, nb)); c != 0 {
				return c
			}
			a, b = a[da:], b[db:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(wholeA, wholeB))
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
