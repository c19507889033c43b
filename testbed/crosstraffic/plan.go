package crosstraffic

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// Kinds are the faults that this package makes.
var Kinds = []faults.Kind{faults.RoCEBurst, faults.IncastBurst, faults.UDPTraffic, faults.TCPTraffic}

// Ground is what the traffic would run on.
type Ground struct {
	Plan *topo.Plan
	Seed uint64
	// Virtual says that there are no namespaces, and so no sockets.
	Virtual bool
}

// pair is a sender and a receiver.
type pair struct{ from, to topo.PortRef }

// Check says why a fault can't be made on a ground; its errors are of the fault's keys.
func Check(spec faults.Spec, g Ground) error {
	pairs, err := g.pairs(&spec)
	if err != nil {
		return err
	}
	switch spec.Kind {
	case faults.TCPTraffic:
		if g.Virtual {
			return strict.At("kind", "there is no TCP in virtual time: its senders would be a model, and what it did to the others a guess (the kernel and soft backends run the kernel's own)")
		}
	case faults.UDPTraffic:
		return g.datagrams(&spec, pairs)
	}
	return nil
}

// pairs are who sends to whom: each NIC at which the fault strikes to each that it goes to on another host, senders first.
func (g *Ground) pairs(spec *faults.Spec) ([]pair, error) {
	if !slices.Contains(Kinds, spec.Kind) {
		return nil, strict.At("kind", "%s is no traffic beside the workloads", spec.Kind)
	}
	scope := faults.Scope{Topology: g.Plan.Topology, Plan: g.Plan, Seed: g.Seed}
	from, err := faults.Aim(spec, scope)
	if err != nil {
		return nil, err
	}
	at := faults.Spec{Name: spec.Name, Kind: spec.Kind, At: spec.To}
	to, err := faults.Aim(&at, scope)
	if err != nil {
		var at *strict.PathError
		if errors.As(err, &at) { // it is the other end's selector
			err = at.Err
		}
		return nil, strict.At("to", "%w", err)
	}
	if spec.Kind == faults.IncastBurst && len(to) != 1 {
		return nil, strict.At("to", "an incast goes to one NIC, this selects %d (%s, …): name a port, such as %q", len(to), to[0].Port, to[0].Port.String())
	}
	var out []pair
	for _, f := range from {
		for _, t := range to {
			p := pair{f.Port, t.Port}
			if p.from.Node == p.to.Node {
				continue
			}
			if !g.Plan.Reaches(p.from, p.to) || !g.Plan.Reaches(p.to, p.from) {
				return nil, strict.At("to", "no route joins %s and %s", p.from, p.to)
			}
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil, strict.At("to", "who sends and who receives are of one host: nothing of that crosses the fabric")
	}
	if n := len(out) * streams(spec); n > maxStreams {
		return nil, strict.At("streams", "%d pairs of NICs and %d streams each are more than %d streams", len(out), streams(spec), maxStreams)
	}
	return out, nil
}

// maxStreams bounds what one fault may open.
const maxStreams = 4096

func streams(spec *faults.Spec) int { return max(spec.Streams, 1) }

// datagrams refuses datagrams that would be cut in pieces on their way, because a hit would be no packet then, and more of them than
// a NIC's line carries.
func (g *Ground) datagrams(spec *faults.Spec, pairs []pair) error {
	asked := map[topo.PortRef]topo.Rate{}
	for _, p := range pairs {
		if most := g.payload(p); int(spec.Size) > most {
			return strict.At("size", "between %s and %s the MTU is %d: a datagram of more than %d bytes would leave in pieces", p.from, p.to, g.mtu(p), most)
		}
		line := g.Plan.Link(p.from).Rate
		if asked[p.from] += spec.Rate * topo.Rate(streams(spec)); asked[p.from] > line {
			return strict.At("rate", "%s sends %v in all its streams, and its line carries %v", p.from, asked[p.from], line)
		}
	}
	return nil
}

// mtu is the smaller one of the two ends' links.
func (g *Ground) mtu(p pair) int { return min(g.Plan.Link(p.from).MTU, g.Plan.Link(p.to).MTU) }

// payload is what a datagram carries at most.
func (g *Ground) payload(p pair) int {
	port, _ := g.Plan.Port(p.from)
	if port.Addr.Addr().Is4() {
		return g.mtu(p) - ipv4Headers
	}
	return g.mtu(p) - ipv6Headers
}

// The headers of IP and UDP, in bytes.
const (
	ipv4Headers = 20 + 8
	ipv6Headers = 40 + 8
)

// defaultPayload is a datagram's payload unless the fault says: what passes everywhere.
const defaultPayload = 1400

// datagram is the payload of the fault's datagrams between two NICs.
func (g *Ground) datagram(spec *faults.Spec, p pair) int {
	if spec.Size > 0 {
		return int(spec.Size)
	}
	return min(defaultPayload, g.payload(p))
}

// named says which fault an error is of.
func named(fault, what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("fault %s: %s: %w", fault, what, err)
}
