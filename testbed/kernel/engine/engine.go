//go:build linux

package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"github.com/rocebed/rocebed/testbed/kernel/bpf"
	"github.com/rocebed/rocebed/topo"
)

// kindPrefix begins the name of every engine's queueing discipline.
const kindPrefix = "rb_"

// kindOf is the name of a testbed's queueing discipline, which no other's on the machine has: names of disciplines are the kernel's, whatever
// the network namespace.
func kindOf(testbed string) string {
	h := sha256.Sum256([]byte(testbed))
	return kindPrefix + hex.EncodeToString(h[:6])
}

// Config is what an engine is made for.
type Config struct {
	Testbed  string // its name, unique on the machine
	Ports    int    // numbered from 1 on
	Nodes    int    // numbered from 0 on
	Slots    int    // frames that may wait, all ports together
	Flows    int    // queue pairs that may have a rate of their own, all ports together; at least 1
	MaxIndex int    // the largest index of an interface, of ports and of their cables
}

// Engine is the loaded programs and their tables.
type Engine struct {
	*Tables
	coll *ebpf.Collection
	ops  link.Link
	kind string
	cfg  Config

	mu    sync.Mutex
	slots uint32 // given away
	ports map[int]place
}

// place is where a port is.
type place struct {
	Place
	firstSlot uint32
}

// Place is where a port is and what it may hold.
type Place struct {
	Node    int
	Ifindex int // which no other interface of the testbed has
	End     int // index of the near end of its cable; 0: it has none
	Slots   int // frames that may wait
}

// Supported says why this kernel can have no port engine, by the types that it says it has; nil where it has those of queueing disciplines in eBPF.
func Supported() error {
	types, err := btf.LoadKernelSpec()
	if err != nil {
		return fmt.Errorf("port engine: the kernel's types: %w", err)
	}
	if _, err := types.AnyTypeByName("bpf_struct_ops_Qdisc_ops"); err != nil {
		return fmt.Errorf("it has no queueing disciplines in eBPF (Linux 6.16 with NET_SCH_BPF): %w", err)
	}
	return nil
}

// Open loads the programs and registers the queueing discipline.
func Open(cfg Config) (_ *Engine, err error) {
	spec, err := bpf.LoadPort()
	if err != nil {
		return nil, fmt.Errorf("port engine: %w", err)
	}
	n := uint32(cfg.Ports + 1)
	for name, size := range map[string]uint32{
		"port_confs": n, "port_states": n, "groups": n * Priorities, "marks": n * Priorities, "arrival_counts": n, "storms": n, "arrivals": uint32(cfg.MaxIndex + 1),
		"nodes": uint32(max(cfg.Nodes, 1)), "memories": uint32(max(cfg.Nodes, 1)), "slots": uint32(max(cfg.Slots, 1)), "flows": uint32(2 * max(cfg.Flows, 1)), "pace_confs": uint32(max(cfg.Flows, 1)), "pace_numbers": uint32(2 * max(cfg.Flows, 1)),
		"departures": uint32(cfg.MaxIndex + 1),
	} {
		spec.Maps[name].MaxEntries = size
	}
	kind := kindOf(cfg.Testbed)
	if err := name(spec.Maps[opsMap], kind); err != nil {
		return nil, fmt.Errorf("port engine: %w", err)
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, fmt.Errorf("port engine: load: %w", err)
	}
	e := &Engine{Tables: &Tables{maps: coll.Maps, maxFlows: max(cfg.Flows, 1)}, coll: coll, kind: kind, cfg: cfg, ports: map[int]place{}}
	if e.ops, err = link.AttachStructOps(link.StructOpsOptions{Map: coll.Maps[opsMap]}); err != nil {
		coll.Close()
		return nil, fmt.Errorf("port engine: register queueing discipline %q: %w", kind, err)
	}
	return e, nil
}

// Close unregisters the discipline and frees programs and tables. Ports that still have it keep it, and its tables, until they go.
func (e *Engine) Close() error {
	err := e.ops.Close()
	e.coll.Close()
	return err
}

// Pause is the program for a port's egress, before its queues.
func (e *Engine) Pause() *ebpf.Program { return e.coll.Programs["pause"] }

// Mark is the program for the near end of cables, before what carries frames on; Arrive is the one for a port's
// ingress.
func (e *Engine) Mark() *ebpf.Program   { return e.coll.Programs["mark"] }
func (e *Engine) Arrive() *ebpf.Program { return e.coll.Programs["arrive"] }

// opsMap is the struct Qdisc_ops in port.c.
const opsMap = "rocebed_port"

// name gives the discipline its name, in the field id of its struct Qdisc_ops.
func name(ops *ebpf.MapSpec, kind string) error {
	st, ok := ops.Value.(*btf.Struct)
	if !ok || len(ops.Contents) != 1 {
		return errors.New("the discipline has no operations")
	}
	value, ok := ops.Contents[0].Value.([]byte)
	for _, m := range st.Members {
		if at := int(m.Offset.Bytes()); ok && m.Name == "id" && at+len(kind) < len(value) {
			clear(value[at:])
			copy(value[at:], kind)
			return nil
		}
	}
	return errors.New("the discipline's operations have no name")
}

// Kind is the queueing discipline's name.
func (e *Engine) Kind() string { return e.kind }

// Handle is the handle that a port's queueing discipline must have.
func Handle(number int) uint32 { return uint32(number) << 16 }

// SetMemory declares how many bytes of packet memory the ports of a node share.
func (e *Engine) SetMemory(node int, shared topo.Bytes) error {
	if err := e.maps["memories"].Put(uint32(node), uint64(shared)); err != nil {
		return fmt.Errorf("port engine: node %d: %w", node, err)
	}
	return e.reconsider(node)
}

// reconsider ends the pauses of a node's groups that what is declared of it leaves room for now.
func (e *Engine) reconsider(node int) error {
	if _, err := e.coll.Programs["reconsider"].Run(&ebpf.RunOptions{Context: uint32(node)}); err != nil {
		return fmt.Errorf("port engine: node %d: look at what is paused: %w", node, err)
	}
	return nil
}

// Add makes a port known, as it is declared. Its qdisc can be made then.
func (e *Engine) Add(number int, at Place, p Port) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if number < 1 || number > e.cfg.Ports {
		return fmt.Errorf("port engine: there is no port %d of %d", number, e.cfg.Ports)
	}
	if int(e.slots)+at.Slots > e.cfg.Slots {
		return fmt.Errorf("port engine: port %d: %d places asked for, %d left", number, at.Slots, e.cfg.Slots-int(e.slots))
	}
	pl := place{at, e.slots}
	e.slots += uint32(at.Slots)
	e.ports[number] = pl
	if err := e.put(number, pl, p); err != nil {
		return err
	}
	if err := e.maps["arrivals"].Put(uint32(at.Ifindex), uint32(number)); err != nil {
		return fmt.Errorf("port engine: port %d: %w", number, err)
	}
	if at.End > 0 {
		if err := e.maps["departures"].Put(uint32(at.End), uint32(number)); err != nil {
			return fmt.Errorf("port engine: port %d: %w", number, err)
		}
	}
	return nil
}

// Declare changes what is declared of a port.
func (e *Engine) Declare(number int, p Port) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	pl, ok := e.ports[number]
	if !ok {
		return fmt.Errorf("port engine: nothing is known of port %d", number)
	}
	if err := e.put(number, pl, p); err != nil {
		return err
	}
	return e.reconsider(pl.Node)
}

func (e *Engine) put(number int, pl place, p Port) error {
	if err := p.Check(); err != nil {
		return err
	}
	if err := e.maps["port_confs"].Put(uint32(number), e.conf(pl, p)); err != nil {
		return fmt.Errorf("port engine: port %d: %w", number, err)
	}
	return nil
}

func (e *Engine) conf(pl place, p Port) conf {
	c := p.encode()
	c.Node, c.FirstSlot, c.Slots = uint32(pl.Node), pl.firstSlot, uint32(pl.Slots)
	return c
}

// Verify reads back what is declared of a port.
func (e *Engine) Verify(number int, p Port) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var got conf
	if err := e.maps["port_confs"].Lookup(uint32(number), &got); err != nil {
		return fmt.Errorf("port engine: port %d: %w", number, err)
	}
	if want := e.conf(e.ports[number], p); got != want {
		return fmt.Errorf("port engine: port %d is declared %+v, not %+v", number, got, want)
	}
	return nil
}

// EventsLost is how many events found the ring full.
func (e *Engine) EventsLost() (n uint64, err error) {
	err = e.coll.Variables["events_lost"].Get(&n)
	return n, err
}
