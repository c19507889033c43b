package rnic

import (
	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// cnpFlow is what the notification point keeps CNPs apart for: a queue pair here, and for datagrams who sends to it.
type cnpFlow struct {
	from     roce.Addr
	qpn, src uint32
}

// congestion is DCQCN in the device.
type congestion struct {
	ect      bool // data is sent as packets that can be marked
	np       *dcqcn.NP[cnpFlow]
	reaction *dcqcn.Reaction
	params   *dcqcn.Params // in force
}

// init makes the two points; without parameters there are none.
func (c *congestion) init(cfg *Config) error {
	p := cfg.Profile.DCQCN
	if p == nil {
		return nil
	}
	c.ect, c.params = true, p
	flows := cfg.Profile.CNPFlows
	if flows == 0 {
		flows = DefaultCNPFlows
	}
	var err error
	if c.np, err = dcqcn.NewNP[cnpFlow](p.MinTimeBetweenCNPs, flows); err != nil {
		return err
	}
	c.reaction, err = dcqcn.NewReaction(*p, dcqcn.Rate(cfg.Rate))
	return err
}

// retune puts other parameters in force, for flows that there are and for new ones; nil: the profile's.
func (d *Device) retune(p *dcqcn.Params) error {
	var c congestion
	cfg := d.cfg
	if p != nil {
		cfg.Profile.DCQCN = p
	}
	if err := c.init(&cfg); err != nil {
		return err
	}
	d.cc = c
	now := d.loop.Now()
	for _, q := range d.qps {
		if q != nil && q.pace != nil {
			q.pace.settle(now)
			c.reaction.Adopt(&q.pace.rp, now)
		}
	}
	return nil
}

// ect is a traffic class as a connected queue pair's data is sent where DCQCN is on: a NIC that reacts to marks says
// that its packets can be marked, whatever the application chose (ECT(0), as ConnectX does). Datagrams, which no
// reaction point slows down, and ACKs go out as the address handle says.
func ect(class uint8) uint8 {
	if roce.ECN(class&3) == roce.NotECT {
		class |= uint8(roce.ECT0)
	}
	return class
}

// marked takes a CE-marked packet of a queue pair's peer. The CNP leaves not before a time.
func (d *Device) marked(q *qp, f *link.Frame, at loop.Time) {
	if d.cc.np == nil {
		return
	}
	flow := cnpFlow{qpn: q.num}
	if q.kind == verbs.UD {
		flow.from, flow.src = f.Packet.Src, f.Packet.DETH.SrcQP
	}
	if !d.cc.np.OnMarked(d.loop.Now(), flow) || d.faulty.mutes(d.loop.Now()) {
		return
	}
	to, qpn := &q.path, q.attr.DestQPN
	if q.kind == verbs.UD {
		to, qpn = new(path), flow.src
		to.set(d, &verbs.AHAttr{DGID: f.Packet.Src.Netip()})
	}
	p := d.cc.params
	c := d.frame(to, roce.CNP, qpn, 0, 0)
	c.Packet.BTH.BECN = true
	c.TrafficClass, c.Priority = roce.TrafficClass(p.CNPDSCP, roce.NotECT), p.CNP802pPrio
	c.Packet.TrafficClass = c.TrafficClass
	d.count.CNPSent++
	d.port.control(c, at)
}

// notified takes a CNP. Its queue pair's requester and READ responses share a rate from the first one on.
func (d *Device) notified(f *link.Frame) {
	q := d.find(f.Packet.BTH.DestQP)
	if d.cc.reaction == nil || q == nil || q.state < verbs.RTR || q.state == verbs.Err || q.init.IgnoreCNPs {
		d.count.CNPIgnored++
		return
	}
	if q.pace == nil {
		q.pace = &pace{rp: d.cc.reaction.Flow(), rate: d.cc.reaction.Line()}
		q.tx.port.pace, q.rx.port.pace = q.pace, q.pace
	}
	q.pace.onCNP(d.loop.Now())
	d.count.CNPHandled++
}
