package packet

import (
	"path"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/topo"
)

// Connection is a queue pair with its peer, as the harness tells of it.
type Connection struct {
	Workload string
	Flow     uint32 // in the workload, from 0
	Number   uint32 // among all, from 0, in the order of the scenario
	From, To End    // as the workload calls them
}

// End is one of a connection's.
type End struct {
	Port topo.PortRef
	Addr roce.Addr
	QPN  uint32
	PSN  roce.PSN // the first that it sends
}

// Key is what a packet says of its connection: queue pair numbers are a device's own.
type Key struct {
	Addr roce.Addr // destination
	QPN  uint32    // destination
}

// Entry is what is known of packets to one end of a connection. Encode writes the fields in this order.
type Entry struct {
	List, Len uint32         // its rules: Table.Lists[List : List+Len]
	Base      [2]uint32      // the first PSN: of requests, and of all else
	Passes    [streams]int32 // where each stream's passes are counted, Window of them; −1: nowhere
	Rounds    [streams]int32 // the same for its round; −1: nowhere
	Flow      uint32         // a number for the connection and the direction, from 1; 0: unknown
	Way       uint8          // 0 forward, 1 reverse
}

// Table is what a program makes of connections. The first entry is for packets of connections that nobody knows.
type Table struct {
	Entries []Entry
	Lists   []uint16 // numbers of rules
	Passes  int      // counters in all
	Rounds  int

	prog  *Program
	index map[Key]uint32 // into Entries
}

// NewTable is a table without connections.
func (p *Program) NewTable() *Table {
	t := &Table{prog: p, index: map[Key]uint32{}}
	e := Entry{}
	for s := range streams {
		e.Passes[s], e.Rounds[s] = -1, -1
	}
	for i := range p.Rules {
		if p.about[p.Rules[i].Event].any {
			t.Lists = append(t.Lists, uint16(i))
		}
	}
	e.Len = uint32(len(t.Lists))
	t.Entries = []Entry{e}
	return t
}

// Add takes a connection in, and gives the keys of its two directions: of packets to To, and of those to From. What was counted for a connection with
// the same ends is forgotten.
func (t *Table) Add(c *Connection) [2]Key {
	keys := [2]Key{{c.To.Addr, c.To.QPN}, {c.From.Addr, c.From.QPN}}
	base := [2]uint32{uint32(c.From.PSN & roce.PSNMask), uint32(c.To.PSN & roce.PSNMask)}
	t.add(keys[0], t.entry(c, 0, base))
	t.add(keys[1], t.entry(c, 1, [2]uint32{base[1], base[0]}))
	return keys
}

// Find is the number of the entry for a key; 0: nobody knows the connection.
func (t *Table) Find(k Key) uint32 { return t.index[k] }

func (t *Table) add(k Key, e Entry) {
	i, ok := t.index[k]
	if !ok {
		i = uint32(len(t.Entries))
		t.index[k] = i
		t.Entries = append(t.Entries, Entry{})
	}
	e.Flow = i
	t.Entries[i] = e
}

// entry lists the rules for a direction of a connection, and makes room for what they count.
func (t *Table) entry(c *Connection, way uint8, base [2]uint32) Entry {
	e := Entry{List: uint32(len(t.Lists)), Way: way, Base: base}
	var counted, rounds Class
	for i := range t.prog.Rules {
		r := &t.prog.Rules[i]
		if r.Ways>>way&1 == 0 || !t.prog.about[r.Event].has(c) {
			continue
		}
		t.Lists = append(t.Lists, uint16(i))
		switch r.Flags & (FlagPasses | FlagRounds) {
		case FlagPasses:
			counted |= r.Classes
		case FlagPasses | FlagRounds:
			rounds |= r.Classes
		}
	}
	e.Len = uint32(len(t.Lists)) - e.List
	for s := range streams {
		e.Passes[s], e.Rounds[s] = -1, -1
		if counted&streamClasses[s] != 0 {
			e.Passes[s] = int32(t.Passes)
			t.Passes += int(t.prog.Window)
		}
		if rounds&streamClasses[s] != 0 {
			e.Rounds[s] = int32(t.Rounds)
			t.Rounds++
		}
	}
	return e
}

// streamClasses are the classes of each stream's packets.
var streamClasses = [streams]Class{
	requests: Send | Write | ReadRequest | Atomic | Flush, responses: ReadResponse | AtomicAck, acks: Ack, naks: Nak,
}

// has says whether an event is about a connection.
func (a *about) has(c *Connection) bool {
	number := c.Flow
	if a.wholeNumbers {
		number = c.Number
	}
	return (a.workload == "" || matches(a.workload, c.Workload)) && a.qp.Has(number) && atPort(a.from, c.From.Port) && atPort(a.to, c.To.Port)
}

func atPort(pattern string, p topo.PortRef) bool {
	return pattern == "" || matches(pattern, p.Node) || matches(pattern, p.String())
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}
