//go:build linux

package agent

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/testbed/kernel/nldev"
)

// How long ports obey without word of their agent, and how often it gives word. Wall times.
const (
	leaseFor = time.Second
	renewAt  = 200 * time.Millisecond
)

// agent looks after a fabric's ports.
type agent struct {
	tables *engine.Tables
	events *engine.Events

	mu       sync.Mutex // the loop's, but while it waits; who asks from outside takes it
	pausing  map[int]*pausing
	dogs     map[int]*watchdog
	nics     map[int]*nic
	peers    map[int]int
	reaction *hdrhistogram.Histogram
	seen     uint64
	late     time.Duration
}

// sockets are a node's.
type sockets struct {
	past, through int // raw packet sockets: past the ports' queues, and through them
	rdma          *nldev.Conn
}

func newAgent(s *Spec, tables *engine.Tables, nodes []sockets) (*agent, error) {
	a := &agent{
		tables: tables, pausing: map[int]*pausing{}, dogs: map[int]*watchdog{}, nics: map[int]*nic{}, peers: map[int]int{},
		reaction: hdrhistogram.New(1, int64(time.Minute), 3),
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		a.peers[p.Number] = p.Peer
		a.pausing[p.Number] = &pausing{Port: p, fd: nodes[p.Node].past}
		if p.Watchdog.Detect > 0 {
			a.dogs[p.Number] = &watchdog{Watchdog: p.Watchdog}
		}
		if p.NIC != nil {
			n, err := newNIC(p, s.Dilation, tables, nodes[p.Node].rdma, nodes[p.Node].through)
			if err != nil {
				return nil, err
			}
			a.nics[p.Number] = n
		}
	}
	var err error
	a.events, err = tables.Events()
	return a, err
}

// run looks after the ports until close.
func (a *agent) run() error {
	var renewed time.Duration
	for {
		now := engine.Now()
		next := renewed + renewAt
		if now >= next {
			if err := a.tables.Renew(leaseFor); err != nil {
				return err
			}
			renewed, next = now, now+renewAt
		}
		at, err := a.timers(now)
		if err != nil {
			return err
		}
		next = min(next, at)
		a.events.SetDeadline(time.Now().Add(next - engine.Now()))
		e, err := a.events.Next()
		switch {
		case err == nil:
			if err := a.take(e); err != nil {
				return err
			}
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, ringbuf.ErrFlushed): // something else is due
		case errors.Is(err, ringbuf.ErrClosed):
			return nil
		default:
			return fmt.Errorf("read events: %w", err)
		}
	}
}

func (a *agent) close() error { return a.events.Close() }

// timers does what is due at all ports and says when something is next.
func (a *agent) timers(now time.Duration) (next time.Duration, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next = now + time.Hour
	for _, p := range a.pausing {
		at, ok, err := p.refresh(now)
		if err != nil {
			return next, err
		}
		if ok {
			next = min(next, at)
		}
	}
	for _, p := range a.pausing {
		at, ok, err := p.beat(now)
		if err != nil {
			return next, err
		}
		if ok {
			next = min(next, at)
		}
	}
	for number, w := range a.dogs {
		if w.next <= now {
			if err := a.watch(number, w, now); err != nil {
				return next, err
			}
		}
		next = min(next, w.next)
	}
	for _, n := range a.nics {
		at, ok, err := n.flows.timers(now)
		if err != nil {
			return next, err
		}
		if ok {
			next = min(next, at)
		}
	}
	return next, nil
}

// watch lets a watchdog look at its port.
func (a *agent) watch(number int, w *watchdog, now time.Duration) error {
	r, err := a.tables.Read(number)
	if err != nil {
		return err
	}
	stormed, changed := w.look(now, &r)
	if !changed || w.Alert {
		return nil
	}
	dropping := uint8(0)
	if w.Drop {
		dropping = stormed
	}
	return a.tables.SetStorm(number, stormed, dropping)
}

// setWatchdog changes a port's watchdog.
func (a *agent) setWatchdog(number int, to Watchdog) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := a.dogs[number]
	if w == nil {
		w = &watchdog{}
		a.dogs[number] = w
	}
	w.Watchdog = to
	return a.watch(number, w, engine.Now())
}

// take takes an event.
func (a *agent) take(e engine.Event) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen++
	a.late = max(a.late, engine.Now()-e.At)
	switch e.Kind {
	case engine.XOFF, engine.XON:
		if p := a.pausing[e.Port]; p != nil {
			// What counts is what the group asks for now: the event may have waited.
			pausing, err := a.tables.Pausing(e.Port, e.Priority)
			if err != nil {
				return err
			}
			return p.set(engine.Now(), e.Priority, pausing)
		}
	case engine.Told:
		if p := a.pausing[e.Port]; p != nil {
			p.told[e.Priority&7], p.alone[e.Priority&7] = e.At, true
			// The group may have let go meanwhile, and the word of that have come first; or the port may have stopped sending pauses.
			if pausing, err := a.tables.Pausing(e.Port, e.Priority); err != nil || pausing && p.Sends>>(e.Priority&7)&1 != 0 {
				return err
			}
			return p.set(engine.Now(), e.Priority, false)
		}
	case engine.Obeyed:
		if p := a.pausing[a.peers[e.Port]]; p != nil {
			if took, ok := p.obeyed(e.At, e.Priority); ok {
				_ = a.reaction.RecordValue(max(int64(took), 1)) // fails for more than a minute alone
			}
		}
	case engine.CNP:
		if n := a.nics[e.Port]; n != nil {
			return n.cnp(e)
		}
	case engine.Marked:
		if n := a.nics[e.Port]; n != nil {
			return n.marked(e)
		}
	}
	return nil
}

// read says what the agent has done.
func (a *agent) read() Reading {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := engine.Now()
	r := Reading{Ports: map[int]PortReading{}, Events: a.seen, Late: a.late}
	for number, p := range a.pausing {
		v := p.read(now)
		if n := a.nics[number]; n != nil {
			v.NIC = n.read()
			v.Faults.MuteCNP, v.Faults.CNPGap = n.mute, n.gap
		}
		if w := a.dogs[number]; w != nil {
			v.Storms, v.Watchdog = w.seen, w.Watchdog
		}
		r.Ports[number] = v
	}
	r.Reaction = ReactionReading{
		Count: uint64(a.reaction.TotalCount()), P50: time.Duration(a.reaction.ValueAtQuantile(50)), P999: time.Duration(a.reaction.ValueAtQuantile(99.9)), Max: time.Duration(a.reaction.Max()),
	}
	return r
}

// setParams changes a NIC's DCQCN.
func (a *agent) setParams(port int, params dcqcn.Params) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.nics[port]
	if n == nil {
		return fmt.Errorf("port %d has no DCQCN", port)
	}
	return n.set(engine.Now(), params)
}
