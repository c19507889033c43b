package silicon

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/topo"
)

// picked is a fault that names single packets, on one direction of a link.
type picked struct {
	in   *Injector
	name string
	ref  topo.PortRef
	port *Port
	prog *packet.Program
	own  roce.MAC
	via  roce.MAC

	known []packet.Connection // when it was applied
}

func (in *Injector) picked(s *faults.Spec, from topo.PortRef) (*picked, error) {
	events := slices.Clone(s.Events)
	for _, l := range s.DataPktEvents {
		events = append(events, l.Event())
	}
	prog, err := packet.Compile(events, faults.Seed(in.seed, s.Name, from.String()))
	if err != nil {
		return nil, err
	}
	p, _ := in.plan.Port(from)
	return &picked{in: in, name: s.Name, ref: from, port: in.port(from), prog: prog, own: roce.MAC(p.MAC), via: roce.MAC(p.PeerMAC)}, nil
}

// Connect implements fabric.Connector. heard is called on the last port's loop to hear of it.
func (in *Injector) Connect(c packet.Connection, heard func()) {
	in.connections = append(in.connections, c)
	one := loop.Countdown(len(in.picking)+1, heard)
	for _, e := range in.picking {
		e.port.Loop.Post(func() {
			e.port.Wire.Connect(e.name, &c)
			one()
		})
	}
	one()
}

func (e *picked) possible() error { return nil }
func (e *picked) allowed() error  { return nil }
func (e *picked) ports() []*Port  { return []*Port{e.port} }

func (e *picked) claim() {
	e.known = slices.Clone(e.in.connections)
	e.in.picking = append(e.in.picking, e)
}

func (e *picked) release() {
	e.in.picking = slices.DeleteFunc(e.in.picking, func(have *picked) bool { return have == e })
}

func (e *picked) apply(p *Port) error {
	if err := p.Wire.Pick(e.name, e.prog, e.known, e.own, e.via); err != nil {
		return fmt.Errorf("%s: %w", e.ref, err)
	}
	return nil
}

func (e *picked) verify(p *Port) error {
	k := p.Wire.picks(e.name)
	switch {
	case k == nil:
		return fmt.Errorf("%s: %s is not on the link", e.ref, e.name)
	case !bytes.Equal(k.prog.Encode(nil), e.prog.Encode(nil)):
		return fmt.Errorf("%s: on the link are other events than those of %s", e.ref, e.name)
	case k.known < len(e.known):
		return fmt.Errorf("%s: %s knows %d connections of %d", e.ref, e.name, k.known, len(e.known))
	}
	return nil
}

func (e *picked) hits(p *Port) uint64 {
	if k := p.Wire.picks(e.name); k != nil {
		return k.hits
	}
	return 0
}

func (e *picked) heal(p *Port) { p.Wire.Unpick(e.name) }

func (e *picked) clean(p *Port) error {
	if p.Wire.picks(e.name) != nil {
		return fmt.Errorf("%s: %s is still on the link", e.ref, e.name)
	}
	return nil
}
