//go:build linux

package agent

import (
	"container/heap"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/testbed/kernel/nldev"
	"github.com/rocebed/rocebed/topo"
)

const (
	// listAgain is the least wall time between two looks at the kernel's list of queue pairs for one that it didn't have, and
	// listOld is when the list isn't believed any more: numbers of queue pairs are given anew.
	listAgain = 20 * time.Millisecond
	listOld   = 500 * time.Millisecond
	// countEvery is how often a limited flow's bytes are counted, for the byte counter of its reaction point.
	countEvery = 10 * time.Millisecond
	// notices is how many flows may have a CNP in one interval.
	notices = 4096
	// cnpPort is the UDP source port of CNPs: any will do, since nothing spreads them but ECMP.
	cnpPort = 0xc000
)

// source is who is told by a CNP.
type source struct {
	addr netip.Addr
	qpn  uint32
}

// nic is DCQCN at a port.
type nic struct {
	port     *Port
	dilation loop.Dilation
	tables   *engine.Tables
	rdma     *nldev.Conn
	fd       int // a raw socket through the port's queues
	np       *dcqcn.NP[source]
	reaction *dcqcn.Reaction
	last     loop.Time // of the reaction points' events

	peers  map[uint32]uint32 // remote queue pairs by local ones
	listed time.Duration
	flows  map[uint32]*flow // by local queue pair
	due    dueFlows

	unmapped, noFlow uint64
}

// flow is a queue pair's reaction point and, while it is limited, its flows in the engine.
type flow struct {
	rp     dcqcn.RP
	remote uint32
	to     netip.Addr
	paced  []*engine.Flow
	sent   uint64 // bytes of the flows that the reaction point has heard of
	rate   dcqcn.Rate
	at     time.Duration // when it is looked at next
	place  int           // in the heap; -1: not in it
}

func newNIC(p *Port, d loop.Dilation, tables *engine.Tables, rdma *nldev.Conn, fd int) (*nic, error) {
	n := &nic{port: p, dilation: d, tables: tables, rdma: rdma, fd: fd, peers: map[uint32]uint32{}, flows: map[uint32]*flow{}}
	return n, n.set(p.NIC.Params)
}

// set changes the parameters, of flows that there are too.
func (n *nic) set(params dcqcn.Params) error {
	np, err := dcqcn.NewNP[source](params.MinTimeBetweenCNPs, notices)
	if err != nil {
		return fmt.Errorf("%s: %w", n.port.Name, err)
	}
	reaction, err := dcqcn.NewReaction(params, dcqcn.Rate(n.port.NIC.Line))
	if err != nil {
		return fmt.Errorf("%s: %w", n.port.Name, err)
	}
	if n.np != nil {
		np.Counters, reaction.Counters = n.np.Counters, n.reaction.Counters
	}
	n.np, n.reaction, n.port.NIC.Params = np, reaction, params
	for _, f := range n.flows {
		reaction.Adopt(&f.rp, n.last)
	}
	return nil
}

// fabric is an engine's time as a fabric's, never before one that there has been.
func (n *nic) fabric(at time.Duration) loop.Time {
	n.last = max(n.last, loop.Time(n.dilation.Fabric(at)))
	return n.last
}

// peer is the remote queue pair of a local one.
func (n *nic) peer(now time.Duration, qpn uint32) (remote uint32, ok bool, err error) {
	age := now - n.listed
	if remote, ok = n.peers[qpn]; n.listed != 0 && (ok && age < listOld || age < listAgain) {
		return remote, ok, nil
	}
	n.listed = now
	all, err := n.rdma.QPs(n.port.NIC.Device)
	if err != nil {
		return 0, false, fmt.Errorf("%s: %w", n.port.Name, err)
	}
	clear(n.peers)
	for _, q := range all {
		if q.Remote != 0 {
			n.peers[q.Num] = q.Remote
		}
	}
	remote, ok = n.peers[qpn]
	return remote, ok, nil
}

// marked takes a marked packet that came for a local queue pair, and sends its sender a CNP where one is due.
func (n *nic) marked(e engine.Event) error {
	remote, ok, err := n.peer(e.At, e.QPN)
	if err != nil || !ok {
		n.unmapped++
		return err
	}
	if !n.np.OnMarked(n.fabric(e.At), source{e.Source, remote}) {
		return nil
	}
	p := roce.NewCNP(remote)
	p.Src, p.Dst = roce.AddrFrom(n.port.NIC.Addr), roce.AddrFrom(e.Source)
	p.SrcMAC, p.DstMAC = n.port.MAC, n.port.PeerMAC
	p.TrafficClass, p.TTL, p.SrcPort = n.port.NIC.Params.CNPDSCP<<2, 64, cnpPort
	frame, err := p.Append(nil)
	if err == nil {
		err = unix.Sendto(n.fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: n.port.Index, Protocol: 0x0008, Halen: 6})
	}
	if err != nil && err != unix.ENETDOWN && err != unix.ENOBUFS {
		return fmt.Errorf("%s: send a CNP: %w", n.port.Name, err)
	}
	return nil
}

// cnp takes a CNP that came for a local queue pair, and slows its flows down.
func (n *nic) cnp(e engine.Event) error {
	remote, ok, err := n.peer(e.At, e.QPN)
	if err != nil || !ok {
		n.unmapped++
		n.reaction.Ignore()
		return err
	}
	f := n.flows[e.QPN]
	if f != nil && f.remote != remote { // the number is another queue pair's now
		n.drop(f)
		f = nil
	}
	if f == nil {
		f = &flow{rp: n.reaction.Flow(), remote: remote, to: e.Source, place: -1}
		n.flows[e.QPN] = f
	}
	now := n.fabric(e.At)
	if err := n.count(f, now); err != nil {
		return err
	}
	f.rp.OnCNP(now)
	return n.pace(f, e.At)
}

// count tells a reaction point what its flows have sent.
func (n *nic) count(f *flow, now loop.Time) error {
	var sent uint64
	for _, p := range f.paced {
		r, err := p.Read()
		if err != nil {
			return err
		}
		sent += r.TxBytes
	}
	if sent > f.sent {
		f.rp.OnSent(now, dcqcn.Bytes(sent-f.sent))
	}
	f.sent = sent
	return nil
}

// pace gives the engine the rate of a flow, and says when the flow is looked at again.
func (n *nic) pace(f *flow, now time.Duration) error {
	switch {
	case !f.rp.Limited():
		return n.release(f, now)
	case len(f.paced) == 0:
		if err := n.open(f); err != nil {
			if errors.Is(err, engine.ErrFlows) {
				n.noFlow++
				return nil
			}
			return err
		}
	case f.rate != f.rp.Rate():
		for _, p := range f.paced {
			if err := p.SetRate(n.wall(f.rp.Rate())); err != nil {
				return err
			}
		}
	}
	f.rate = f.rp.Rate()
	at := now + time.Hour
	if next, ok := f.rp.NextTimer(); ok {
		at = now + n.dilation.Wall(next.Sub(n.last))
	}
	if n.port.NIC.Params.RPGByteReset > 0 {
		at = min(at, now+countEvery)
	}
	n.due.set(f, at)
	return nil
}

func (n *nic) wall(r dcqcn.Rate) topo.Rate {
	return max(topo.Rate(uint64(r)/uint64(n.dilation.Factor())), 8)
}

func (n *nic) open(f *flow) error {
	for _, responses := range []bool{false, true} {
		key := engine.FlowKey{Port: n.port.Number, To: f.to, QPN: f.remote, Responses: responses}
		p, err := n.tables.OpenFlow(key, n.wall(f.rp.Rate()))
		if err != nil {
			return err
		}
		f.paced = append(f.paced, p)
	}
	return nil
}

// release lets a flow that is at line rate again go back to the port's queue, once nothing of it waits apart.
func (n *nic) release(f *flow, now time.Duration) error {
	for len(f.paced) > 0 {
		last := len(f.paced) - 1
		closed, err := f.paced[last].Close()
		if err != nil {
			return err
		}
		if !closed {
			n.due.set(f, now+countEvery)
			return nil
		}
		f.paced = f.paced[:last]
	}
	f.sent, f.rate = 0, 0
	n.due.remove(f)
	return nil
}

// drop forgets a flow whose queue pair is gone. Nothing waits in its flows but what nobody wants any more.
func (n *nic) drop(f *flow) {
	n.due.remove(f)
	for _, p := range f.paced {
		_, _ = p.Close() // what still waits goes at line rate, and its number is lost to others
	}
}

// timers does what is due, and says when something is next; false: nothing.
func (n *nic) timers(now time.Duration) (next time.Duration, ok bool, err error) {
	for len(n.due) > 0 && n.due[0].at <= now {
		f := n.due[0]
		t := n.fabric(now)
		if err := n.count(f, t); err != nil {
			return 0, false, err
		}
		f.rp.OnTimer(t)
		if err := n.pace(f, now); err != nil {
			return 0, false, err
		}
	}
	if len(n.due) == 0 {
		return 0, false, nil
	}
	return n.due[0].at, true, nil
}

func (n *nic) read() *NICReading {
	r := &NICReading{
		CNPSent: n.np.Counters.CNPSent, TableFull: n.np.Counters.TableFull, Suppressed: n.np.Counters.Suppressed,
		CNPHandled: n.reaction.Counters.CNPHandled, CNPIgnored: n.reaction.Counters.CNPIgnored, RateChanges: n.reaction.Counters.Changes,
		Unmapped: n.unmapped, NoFlow: n.noFlow,
	}
	for _, f := range n.flows {
		if f.rp.Limited() {
			r.Limited++
		}
	}
	return r
}

// dueFlows is a heap of flows by when they are looked at.
type dueFlows []*flow

func (d *dueFlows) set(f *flow, at time.Duration) {
	f.at = at
	if f.place >= 0 {
		heap.Fix(d, f.place)
		return
	}
	heap.Push(d, f)
}

func (d *dueFlows) remove(f *flow) {
	if f.place >= 0 {
		heap.Remove(d, f.place)
	}
}

func (d dueFlows) Len() int           { return len(d) }
func (d dueFlows) Less(i, j int) bool { return d[i].at < d[j].at }
func (d dueFlows) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = i, j
}
func (d *dueFlows) Push(x any) {
	f := x.(*flow)
	f.place = len(*d)
	*d = append(*d, f)
}
func (d *dueFlows) Pop() any {
	last := len(*d) - 1
	f := (*d)[last]
	f.place = -1
	*d = (*d)[:last]
	return f
}
