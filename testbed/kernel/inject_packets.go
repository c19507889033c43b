//go:build linux

package kernel

import (
	"slices"
	"time"

	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/testbed/kernel/cable"
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

// Connect implements fabric.Connector: what is in force has heard of the connection when it returns.
func (in *injector) Connect(c packet.Connection) {
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
