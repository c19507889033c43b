//go:build linux

package agent

import (
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
)

const (
	// notices is how many flows may have a CNP in one interval.
	notices = 4096
	// cnpPort is the UDP source port of CNPs: any will do, since nothing spreads them but ECMP.
	cnpPort = 0xc000
)

// source is a queue pair of another node.
type source struct {
	addr netip.Addr
	qpn  uint32
}

// nic is DCQCN at a port.
type nic struct {
	port     *Port
	dilation loop.Dilation
	peers    peers
	send     func(frame []byte) error
	np       *dcqcn.NP[source]
	marks    loop.Time // of the notification point's last event
	flows    *flows

	sent     uint64 // CNPs that went out
	unmapped uint64

	// What is wrong with it: Faults.
	mute    bool
	gap     time.Duration
	nextCNP loop.Time
	leftOut uint64
}

func newNIC(p *Port, d loop.Dilation, tables *engine.Tables, rdma *nldev.Conn, fd int) (*nic, error) {
	open := func(key engine.FlowKey, rate uint64) (paced, error) {
		f, err := tables.OpenFlow(key, rateOf(rate))
		if err != nil {
			return nil, err // not a nil *engine.Flow in an interface
		}
		return f, nil
	}
	n := &nic{port: p, dilation: d}
	n.peers = newPeers(func(qpn uint32) (uint32, bool, error) {
		q, ok, err := rdma.QP(p.NIC.Device, qpn)
		return q.Remote, ok, err
	})
	to := &unix.SockaddrLinklayer{Ifindex: p.Index, Protocol: etherType(p.NIC.Addr), Halen: 6}
	n.send = func(frame []byte) error { return unix.Sendto(fd, frame, 0, to) }
	n.flows = newFlows(p, d, &n.peers, open)
	return n, n.set(engine.Now(), p.NIC.Params)
}

// etherType is that of packets from an address, in network order.
func etherType(a netip.Addr) uint16 {
	if a.Is4() {
		return 0x0008
	}
	return 0xdd86
}

// set changes the parameters, of flows that there are too.
func (n *nic) set(now time.Duration, params dcqcn.Params) error {
	np, err := dcqcn.NewNP[source](params.MinTimeBetweenCNPs, notices)
	if err == nil {
		err = n.flows.set(now, params)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", n.port.Name, err)
	}
	if n.np != nil {
		np.Counters = n.np.Counters
	}
	n.np, n.port.NIC.Params = np, params
	return nil
}

// marked takes a marked packet that came for a local queue pair, and sends its sender a CNP where one is due.
func (n *nic) marked(e engine.Event) error {
	remote, ok, err := n.peers.of(e.At, e.QPN)
	if err != nil {
		return fmt.Errorf("%s: %w", n.port.Name, err)
	}
	if !ok {
		n.unmapped++
		return nil
	}
	n.marks = max(n.marks, loop.Time(n.dilation.Fabric(e.At)))
	if !n.np.OnMarked(n.marks, source{e.Source, remote}) || n.mutes(n.marks) {
		return nil
	}
	p := roce.NewCNP(remote)
	p.Src, p.Dst = roce.AddrFrom(n.port.NIC.Addr), roce.AddrFrom(e.Source)
	p.SrcMAC, p.DstMAC = n.port.MAC, n.port.PeerMAC
	p.TrafficClass, p.TTL, p.SrcPort = n.port.NIC.Params.CNPDSCP<<2, 64, cnpPort
	frame, err := p.Append(nil)
	if err == nil {
		err = n.send(frame)
	}
	if err != nil && !errors.Is(err, unix.ENETDOWN) && !errors.Is(err, unix.ENOBUFS) {
		return fmt.Errorf("%s: send a CNP: %w", n.port.Name, err)
	}
	if err == nil {
		n.sent++
	}
	return nil
}

// mutes says whether a CNP that is due is not sent.
func (n *nic) mutes(now loop.Time) bool {
	if n.mute || n.gap > 0 && now < n.nextCNP {
		n.leftOut++
		return true
	}
	n.nextCNP = now.Add(n.gap)
	return false
}

// cnp takes a CNP that came for a local queue pair, and slows its flows down.
func (n *nic) cnp(e engine.Event) error {
	remote, ok, err := n.peers.of(e.At, e.QPN)
	if err == nil && ok {
		err = n.flows.cnp(e.At, e.QPN, source{e.Source, remote})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", n.port.Name, err)
	}
	if !ok {
		n.unmapped++
		n.flows.reaction.Ignore()
	}
	return nil
}

func (n *nic) read() *NICReading {
	r := &NICReading{
		CNPSent: n.sent, TableFull: n.np.Counters.TableFull, Suppressed: n.np.Counters.Suppressed,
		CNPHandled: n.flows.reaction.Counters.CNPHandled, CNPIgnored: n.flows.reaction.Counters.CNPIgnored, RateChanges: n.flows.reaction.Counters.Changes,
		Unmapped: n.unmapped, NoFlow: n.flows.without, Known: len(n.flows.byQPN), CNPsLeftOut: n.leftOut, Params: n.port.NIC.Params,
	}
	for _, f := range n.flows.byQPN {
		if f.rp.Limited() {
			r.Limited++
		}
	}
	return r
}
