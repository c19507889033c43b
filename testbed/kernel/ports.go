//go:build linux

package kernel

import (
	"errors"
	"fmt"
	"sync"

	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/testbed/kernel/nl"
	"github.com/rocebed/rocebed/testbed/kernel/tc"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

// ports is the one owner of a node's ports: others declare, it reconciles.
type ports struct {
	ns      *linux.Namespace
	conn    *tc.Conn
	engine  *engine.Engine // nil: none
	numbers map[string]int // of ports in the engine, by port name

	mu       sync.Mutex
	declared map[string]declaration // by port name
}

// newPorts declares all of a node's ports at once and makes them.
func newPorts(ns *linux.Namespace, declared map[string]declaration, e *engine.Engine, numbers map[string]int, place func(linux.Link) engine.Place) (_ *ports, err error) {
	p := &ports{ns: ns, declared: declared, engine: e, numbers: numbers}
	if err := ns.Do(func() (err error) { p.conn, err = tc.Open(); return err }); err != nil {
		return nil, fmt.Errorf("%s: %w", ns.Node(), err)
	}
	var b nl.Batch
	for _, l := range ns.Links() {
		if e != nil {
			if err := e.Add(numbers[l.Port], place(l), *declared[l.Port].port); err != nil {
				return nil, errors.Join(fmt.Errorf("%s: %w", p.ref(l.Port), err), p.conn.Close())
			}
			tc.AppendHookPlace(&b, l.Index, p.ref(l.Port).String())
		}
		p.append(&b, l, nil, declared[l.Port].objects(e, numbers[l.Port]))
	}
	for _, l := range ns.Links() {
		if e != nil {
			tc.AppendHook(&b, l.Index, e.Arrive().FD(), p.ref(l.Port).String())
			if declared[l.Port].port.Sends != 0 {
				tc.AppendEgressHook(&b, l.Index, e.Pause().FD(), p.ref(l.Port).String())
			}
		}
	}
	if err := p.conn.Send(&b); err != nil {
		return nil, errors.Join(err, p.conn.Close())
	}
	return p, nil
}

func (p *ports) append(b *nl.Batch, l linux.Link, have []tc.Report, want []tc.Object) {
	for _, op := range tc.Diff(have, want) {
		tc.AppendOp(b, l.Index, op, p.ns.Node()+":"+l.Port)
	}
}

func (p *ports) ref(port string) topo.PortRef { return topo.PortRef{Node: p.ns.Node(), Port: port} }

// change declares something else about a port and makes it so. After an error, the old
// declaration stands.
func (p *ports) change(port string, change func(declaration) declaration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.ns.Link(port)
	if !ok {
		return fmt.Errorf("%s: no such port", p.ref(port))
	}
	want := change(p.declared[port])
	if err := want.Check(); err != nil {
		return fmt.Errorf("%s: %w", p.ref(port), err)
	}
	if want.port != nil {
		if err := p.engine.Declare(p.numbers[port], *want.port); err != nil {
			return fmt.Errorf("%s: %w", p.ref(port), err)
		}
		p.declared[port] = want
		return nil
	}
	have, err := p.conn.Tree(l.Index)
	if err != nil {
		return fmt.Errorf("%s: %w", p.ref(port), err)
	}
	var b nl.Batch
	p.append(&b, l, have, want.objects(nil, 0))
	if err := p.conn.Send(&b); err != nil {
		return err
	}
	p.declared[port] = want
	return nil
}

// declaration is what is declared about a port.
func (p *ports) declaration(port string) declaration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.declared[port]
}

// verify reads a port's tree back and compares every parameter with the declaration.
func (p *ports) verify(port string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.ns.Link(port)
	if !ok {
		return fmt.Errorf("%s: no such port", p.ref(port))
	}
	have, err := p.conn.Tree(l.Index)
	if err == nil {
		err = tc.Verify(have, p.declared[port].objects(p.engine, p.numbers[port]))
	}
	if err == nil && p.engine != nil {
		err = p.engine.Verify(p.numbers[port], *p.declared[port].port)
	}
	if err != nil {
		return fmt.Errorf("%s: verify tc tree: %w", p.ref(port), err)
	}
	return nil
}

// trees are the trees of all ports as the kernel has them, by port.
func (p *ports) trees() (map[string][]tc.Report, error) {
	all, err := p.conn.Trees()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.ns.Node(), err)
	}
	out := make(map[string][]tc.Report, len(all))
	for _, l := range p.ns.Links() {
		out[l.Port] = all[l.Index]
	}
	return out, nil
}

// sent is how many packets a port has sent.
func (p *ports) sent(port string) (uint64, error) {
	trees, err := p.trees()
	if err != nil {
		return 0, err
	}
	for _, r := range trees[port] {
		if r.Parent == tc.Root && p.engine != nil {
			return r.Stats.Packets, nil
		}
		if r.Class && r.ID == tc.ShaperClass {
			return r.Stats.Packets, nil
		}
	}
	return 0, fmt.Errorf("%s: its shaper is gone", p.ref(port))
}

func (p *ports) close() error { return p.conn.Close() }
