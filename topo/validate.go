package topo

import (
	"errors"
	"fmt"
	"time"

	"github.com/rocebed/rocebed/topo/strict"
)

// Limits of what a link may be.
const (
	MinMTU   = 576 // bytes; below it IPv4 may not go
	MaxMTU   = 65535
	MaxNodes = 1 << 16
)

// Validate says everything that is wrong with the topology itself: names unfit for namespaces
// and paths, names or ports used twice, links to ports that are not there, ports without a
// link, rates of zero, hosts without a NIC. A topology from a generator or from a Spec has
// passed already. Whether hosts reach each other is the plan's to say.
func (t *Topology) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(t.Nodes) == 0 {
		bad("a topology needs at least one node")
	}
	if len(t.Nodes) > MaxNodes {
		bad("%d nodes are more than %d", len(t.Nodes), MaxNodes)
	}
	nodes := make(map[string]bool, len(t.Nodes))
	linked := make(map[PortRef]int, 2*len(t.Links))
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if err := CheckName(n.Name); err != nil {
			bad("node %q: %w", n.Name, err)
		}
		if nodes[n.Name] {
			bad("two nodes are called %q", n.Name)
		}
		nodes[n.Name] = true
		errs = append(errs, n.validate()...)
		for _, p := range n.Ports {
			ref := PortRef{n.Name, p.Name}
			if err := CheckPortName(p.Name); err != nil {
				bad("%s: %w", ref, err)
			}
			if _, twice := linked[ref]; twice {
				bad("%s: node %s has two ports of this name", ref, n.Name)
			}
			linked[ref] = 0
		}
	}
	for i := range t.Links {
		l := &t.Links[i]
		for _, end := range []PortRef{l.A, l.B} {
			_, ok := linked[end]
			switch {
			case !nodes[end.Node]:
				bad("link %s -- %s: no node %q%s", l.A, l.B, end.Node, strict.DidYouMean(end.Node, t.NodeNames()))
				continue
			case !ok:
				bad("link %s -- %s: no port %s%s", l.A, l.B, end, strict.DidYouMean(end.Port, t.Node(end.Node).portNames()))
				continue
			}
			linked[end]++
			if linked[end] == 2 {
				bad("link %s -- %s: port %s has a link already", l.A, l.B, end)
			}
		}
		if err := l.validate(); err != nil {
			bad("link %s -- %s: %w", l.A, l.B, err)
		}
	}
	for i := range t.Nodes {
		for _, p := range t.Nodes[i].Ports {
			if ref := (PortRef{t.Nodes[i].Name, p.Name}); linked[ref] == 0 {
				bad("%s: the port has no link", ref)
			}
		}
	}
	return errors.Join(errs...)
}

func (n *Node) validate() []error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("node %q: %w", n.Name, fmt.Errorf(format, args...)))
	}
	if n.Role != Host && n.Role != Switch {
		bad("role %q is neither %q nor %q", n.Role, Host, Switch)
	}
	if err := n.Kind.check(n.Role); err != nil {
		bad("%w", err)
	}
	if n.Role == Host && len(n.Ports) == 0 {
		bad("a host needs at least one link")
	}
	if n.GPUs < 0 || n.GPUs > 1024 {
		bad("%d GPUs: a host has 0 to 1024", n.GPUs)
	}
	if n.Role == Host && n.Tier != 0 || n.Role == Switch && n.Tier < 1 {
		bad("tier %d: hosts are tier 0, switches 1 and up", n.Tier)
	}
	return errs
}

func (n *Node) portNames() []string {
	names := make([]string, len(n.Ports))
	for i, p := range n.Ports {
		names[i] = p.Name
	}
	return names
}

func (l *Link) validate() error {
	switch {
	case l.A == l.B:
		return errors.New("both ends are the same port")
	case l.A.Node == l.B.Node:
		return fmt.Errorf("both ends are on node %q", l.A.Node)
	case l.Rate == 0:
		return errors.New("the rate is 0")
	case l.Delay < 0 || l.Delay > time.Minute:
		return fmt.Errorf("a delay of %v is not between 0 and 1m", l.Delay)
	case l.MTU < MinMTU || l.MTU > MaxMTU:
		return fmt.Errorf("an MTU of %d is not between %d and %d bytes", l.MTU, MinMTU, MaxMTU)
	}
	return nil
}

// check says whether a node of the role can be of the kind; the empty kind can always.
func (k Kind) check(r Role) error {
	switch k {
	case "":
		return nil
	case RxeHost, SoftHost:
		if r == Host {
			return nil
		}
	case LinuxSwitch, SoftSwitch:
		if r == Switch {
			return nil
		}
	default:
		all := []string{string(RxeHost), string(SoftHost), string(LinuxSwitch), string(SoftSwitch)}
		return fmt.Errorf("unknown kind %q%s", k, strict.DidYouMean(string(k), all))
	}
	return fmt.Errorf("a %s can't be of kind %q", r, k)
}

// CheckName says whether a name is fit for a namespace, a path, a selector and a shell: 1 to
// 32 of a-z, A-Z, 0-9, "-", "_", ".", beginning with a letter or digit.
func CheckName(s string) error {
	if s == "" {
		return errors.New("the name is empty")
	}
	if len(s) > 32 {
		return fmt.Errorf("the name is longer than 32 characters")
	}
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		switch {
		case alnum:
		case i == 0:
			return errors.New("a name begins with a letter or a digit")
		case c != '-' && c != '_' && c != '.':
			return fmt.Errorf("the character %q can't be in a name (a-z, A-Z, 0-9, \"-\", \"_\", \".\" can)", rune(c))
		}
	}
	return nil
}

// CheckPortName says whether a name is fit for a port: as CheckName says, and none that a network
// namespace has a use for already.
func CheckPortName(s string) error {
	switch s {
	case "lo":
		return errors.New("a node has its own lo, the loopback interface: call the port something else")
	case "all", "default":
		return fmt.Errorf("the kernel takes %q for every interface of a node: call the port something else", s)
	}
	return CheckName(s)
}
