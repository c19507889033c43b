//go:build linux

package engine

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/topo"
)

// Tables are what programs and user space share. A process that didn't load the programs can have them too.
type Tables struct {
	maps     map[string]*ebpf.Map
	maxFlows int

	mu      sync.Mutex
	numbers flowNumbers
}

// shared are the tables that another process is given, in order.
var shared = []string{"port_states", "groups", "marks", "arrival_counts", "nodes", "lease", "storms", "events", "memories", "flows", "pace_confs", "pace_numbers"}

// Files are the tables for another process. The caller closes them; they are the same for as long as the engine is open.
func (t *Tables) Files() (files []*os.File, err error) {
	for _, name := range shared {
		f, err := dupFile(t.maps[name].FD(), name)
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// AdoptTables makes tables of descriptors, in the order of Files, with room for so many flows.
func AdoptTables(fds []int, maxFlows int) (*Tables, error) {
	if len(fds) != len(shared) {
		return nil, fmt.Errorf("port engine: %d tables, not %d", len(fds), len(shared))
	}
	t := &Tables{maps: map[string]*ebpf.Map{}, maxFlows: maxFlows}
	for i, name := range shared {
		m, err := ebpf.NewMapFromFD(fds[i])
		if err != nil {
			return nil, errors.Join(fmt.Errorf("port engine: table %s: %w", name, err), t.Close())
		}
		t.maps[name] = m
	}
	return t, nil
}

// Close lets go of the tables.
func (t *Tables) Close() error {
	var errs []error
	for _, m := range t.maps {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// TableCount is how many tables are shared.
func TableCount() int { return len(shared) }

func dupFile(fd int, name string) (*os.File, error) {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("port engine: table %s: %w", name, err)
	}
	return os.NewFile(uintptr(dup), name), nil
}

// Read reads a port.
func (t *Tables) Read(number int) (r Reading, err error) {
	var s portState
	if err := t.maps["port_states"].Lookup(uint32(number), &s); err != nil {
		return r, fmt.Errorf("port engine: port %d: %w", number, err)
	}
	now := Now()
	r.Packets, r.SlotDrops, r.Late = int(s.Packets), s.SlotDrops, time.Duration(s.Late)
	if s.Lost > 0 {
		return r, fmt.Errorf("port engine: port %d has lost track of %d frames: a bug", number, s.Lost)
	}
	var errs []error
	for i := range r.Queues {
		q, m, g := &s.Queue[i], markCounts{}, groupState{}
		key := uint32(number*Priorities + i)
		errs = append(errs, t.maps["marks"].Lookup(key, &m), t.maps["groups"].Lookup(key, &g))
		r.Queues[i] = QueueReading{
			Packets: int(q.Packets), Bytes: q.Bytes, HighWater: q.High, TxFrames: q.TxFrames, TxBytes: q.TxBytes, Drops: q.Drops, StormDrops: q.StormDrops,
			ECNFrames: m.Seen, Marked: m.Marked, Paused: q.Until > uint64(now), PausedTime: q.paused(uint64(now)), PausedSince: time.Duration(q.Since),
			RxPauses: q.RxPause, RxPaused: q.RxXOFF, Against: q.Against, Mismarked: m.Wrong,
		}
		r.Groups[i] = GroupReading{
			Held: g.Held, Headroom: g.Head, Lossy: g.Lossy, HighWater: g.High, HeadroomHigh: g.HeadHigh, XOFFs: g.XOFFs, HeadroomDrops: g.HeadroomDrops,
			Pausing: g.XOFF != 0, TxPauses: g.TxPause, Frames: g.Frames, Watched: g.Watched,
		}
	}
	errs = append(errs, t.maps["arrival_counts"].Lookup(uint32(number), &r.Arrived))
	return r, errors.Join(errs...)
}

// Depth is how many bytes wait in a queue of a port now.
func (t *Tables) Depth(number, queue int) (topo.Bytes, error) {
	var s portState
	if err := t.maps["port_states"].Lookup(uint32(number), &s); err != nil {
		return 0, fmt.Errorf("port engine: port %d: %w", number, err)
	}
	return topo.Bytes(s.Queue[queue&7].Bytes), nil
}

// Pausing says whether a port's group asks for a pause now.
func (t *Tables) Pausing(number int, priority uint8) (bool, error) {
	var g groupState
	if err := t.maps["groups"].Lookup(uint32(number*Priorities+int(priority&7)), &g); err != nil {
		return false, fmt.Errorf("port engine: port %d: %w", number, err)
	}
	return g.XOFF != 0, nil
}

// SetStorm takes priorities of a port out of their pause, and lets the frames of some be dropped, bit i for priority i.
func (t *Tables) SetStorm(number int, freed, dropping uint8) error {
	if err := t.maps["storms"].Put(uint32(number), [4]uint8{freed, dropping}); err != nil {
		return fmt.Errorf("port engine: port %d: %w", number, err)
	}
	return nil
}

// MemoryReading is a node's packet memory, in bytes.
type MemoryReading struct{ Shared, Used, Total, HighWater uint64 }

// Memory reads a node's packet memory.
func (t *Tables) Memory(node int) (MemoryReading, error) {
	var s nodeState
	if err := t.maps["nodes"].LookupWithFlags(uint32(node), &s, ebpf.LookupLock); err != nil {
		return MemoryReading{}, fmt.Errorf("port engine: node %d: %w", node, err)
	}
	var shared uint64
	if err := t.maps["memories"].Lookup(uint32(node), &shared); err != nil {
		return MemoryReading{}, fmt.Errorf("port engine: node %d: %w", node, err)
	}
	return MemoryReading{shared, s.Used, s.Total, s.High}, nil
}

// Renew lets pauses and rates be obeyed for so long from now on.
func (t *Tables) Renew(d time.Duration) error {
	if err := t.maps["lease"].Put(uint32(0), uint64(Now()+d)); err != nil {
		return fmt.Errorf("port engine: lease: %w", err)
	}
	return nil
}

// Events opens the ring of events. There is one reader.
func (t *Tables) Events() (*Events, error) {
	r, err := ringbuf.NewReader(t.maps["events"])
	if err != nil {
		return nil, fmt.Errorf("port engine: events: %w", err)
	}
	return &Events{r: r}, nil
}
