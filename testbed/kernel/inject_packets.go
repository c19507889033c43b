//go:build linux

package kernel

import (
	"fmt"
	"slices"
	"time"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/testbed/kernel/cable"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// program compiles packet events, with their times as wall times.
func (in *injector) program(events []packet.Event, seed uint64) (*packet.Program, error) {
	prog, err := packet.Compile(events, seed)
	if err != nil {
		return nil, err
	}
	wall := in.f.cfg.Dilation.Wall
	for i := range prog.Rules {
		r := &prog.Rules[i]
		r.Delay, r.AtMost = uint64(wall(time.Duration(r.Delay))), uint64(wall(time.Duration(r.AtMost)))
	}
	return prog, nil
}

// leastOfIPv6 is what bpf_skb_change_tail leaves of a frame at least: all before the transport header (__bpf_skb_min_len, net/core/filter.c), here Ethernet's
// header and IPv6's.
const leastOfIPv6 = 14 + 40

// canTruncate refuses what the kernel would leave undone without a word.
func (in *injector) canTruncate(events []packet.Event) error {
	if in.f.Plan().Options.Family != topo.IPv6 {
		return nil
	}
	for i := range events {
		for _, a := range events[i].Do {
			if a.Verb == packet.Truncate && a.N < leastOfIPv6 {
				return strict.At("events", "the kernel cuts no IPv6 packet to %d bytes: %d must be left (the soft and sim backends can)", a.N, leastOfIPv6)
			}
		}
	}
	return nil
}

// lateAcks is what delays a NIC's ACKs and NAKs, those of RNR too, as they come out of it.
func lateAcks(delay time.Duration) []packet.Event {
	return []packet.Event{{Match: packet.Match{Class: packet.Classes{packet.Ack, packet.Nak}}, Do: packet.Do{{Verb: packet.Delay, Time: delay}}}}
}

// atHosts is plan for what a host's NICs do that can as well be done where their packets come out.
func (in *injector) atHosts(spec *faults.Spec) (effects []effect, err error) {
	targets, err := faults.Aim(spec, faults.Scope{Topology: in.f.Topology(), Plan: in.f.Plan(), Seed: in.f.cfg.Seed})
	if err != nil {
		return nil, fmt.Errorf("fault %s: %w", spec.Name, err)
	}
	for _, t := range targets {
		imp, err := in.impairment(spec, t.Port)
		if err != nil {
			return nil, fmt.Errorf("fault %s: %w", spec.Name, err)
		}
		effects = append(effects, &impaired{f: in.f, from: t.Port, what: imp})
	}
	return effects, nil
}

// Connect implements fabric.Connector: what is in force has heard of the connection when it returns.
func (in *injector) Connect(c packet.Connection, heard func()) {
	defer heard()
	in.connMu.Lock()
	defer in.connMu.Unlock()
	in.connections = append(in.connections, c)
	for _, e := range in.picking {
		e.what.Stage.Connect(&c)
	}
}

// hear tells a stage of packet events of all connections that there have been, and from now on of those to come.
func (e *impaired) hear() {
	if _, ok := e.what.Model.(cable.Events); !ok {
		return
	}
	in := e.f.inject
	in.connMu.Lock()
	defer in.connMu.Unlock()
	for i := range in.connections {
		e.what.Stage.Connect(&in.connections[i])
	}
	in.picking = append(in.picking, e)
}

// deafen ends that.
func (e *impaired) deafen() {
	in := e.f.inject
	in.connMu.Lock()
	defer in.connMu.Unlock()
	in.picking = slices.DeleteFunc(in.picking, func(have *impaired) bool { return have == e })
}
