package workloads

import (
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// pollBatch is how many completions one poll takes, and drainLimit after how many an end lets
// its loop do something else.
const (
	pollBatch  = 32
	drainLimit = 8 * pollBatch
)

// end is one end of a queue pair with its memory and its completion queue. It lives on its
// NIC's loop.
type end struct {
	nic  *nic
	l    loop.Loop
	name string // "h1:eth0 qp 3"
	cfg  endConfig
	psn  uint32

	mem verbs.Memory
	mr  verbs.MR
	cq  verbs.CQ
	qp  verbs.QP
	ah  verbs.AH

	buf       verbs.MR // a rank's buffer, which the peer may write to
	peer      address
	onAddress func(address) // word of the peer
	wcs       []verbs.WC
	closed    bool
	gone      bool           // closed, and all is destroyed
	waiting   []func(error)  // for that
	handle    *End           // where somebody watches
	held      *uint64        // counts receives that are held back; nil: none are
	due       []verbs.RecvWR // held back
	again     loop.Timer
	onWC      func(*verbs.WC)
	onDrain   func()      // after the completions of one event
	onBroken  func(error) // the CQ can't be armed
}

// endConfig is what an end is made of.
type endConfig struct {
	workload string
	flow     int
	memory   int  // bytes to register; 0: none
	bytes    bool // the memory must have bytes
	kind     verbs.MemoryKind
	access   verbs.Access
	service  verbs.QPType
	sendWR   int
	recvWR   int
	deaf     bool // to congestion notifications
	attr     verbs.QPAttr
}

// address is what the peer must know of an end.
type address struct {
	err  error // the end could not be opened
	gid  verbs.GID
	qpn  uint32
	psn  uint32
	qkey uint32
	rkey uint32
	addr uint64
	// A rank's buffer, where the end belongs to one.
	bufRKey uint32
	bufAddr uint64
}

func newEnd(n *nic, name string, psn uint32, cfg endConfig) *end {
	d := &end{nic: n, l: n.Device.Loop(), name: name, cfg: cfg, psn: psn & 0xffffff, wcs: make([]verbs.WC, pollBatch)}
	d.again.Fire = d.drain
	return d
}

const qkey = 0x11111111

// open makes memory, CQ and QP, and brings the QP to INIT. On an error what was made stays
// until close.
func (d *end) open(limit loop.Duration, done func(error)) {
	if d.nic.dead != "" {
		done(d.wrap(errors.New(d.nic.dead)))
		return
	}
	dev := d.nic.Device
	steps := []step{{"create cq", func(done func(error)) {
		dev.CreateCQ(d.cfg.sendWR+d.cfg.recvWR+1, func(verbs.CQ) { d.drain() }, func(cq verbs.CQ, err error) {
			d.cq = cq
			done(err)
		})
	}}}
	if d.cfg.memory > 0 {
		steps = append(steps, step{"register memory", func(done func(error)) {
			mem, err := d.nic.alloc(d.cfg.memory, d.cfg.kind, d.cfg.bytes)
			if err != nil {
				done(err)
				return
			}
			d.mem = mem
			d.nic.pd.RegMR(mem, 0, d.cfg.memory, d.cfg.access, func(mr verbs.MR, err error) {
				d.mr = mr
				done(err)
			})
		}})
	}
	steps = append(steps, step{"create qp", func(done func(error)) {
		d.nic.pd.CreateQP(verbs.QPInit{
			Type: d.cfg.service, SendCQ: d.cq, RecvCQ: d.cq,
			MaxSendWR: max(d.cfg.sendWR, 1), MaxRecvWR: max(d.cfg.recvWR, 1), MaxSendSGE: 1, MaxRecvSGE: 1, IgnoreCNPs: d.cfg.deaf,
		}, func(qp verbs.QP, err error) {
			d.qp = qp
			done(err)
		})
	}}, step{"modify qp to INIT", func(done func(error)) {
		attr, mask := verbs.QPAttr{State: verbs.Init, QKey: qkey, Access: d.cfg.access}, verbs.MaskState|verbs.MaskAccess
		if d.cfg.service == verbs.UD {
			mask = verbs.MaskState | verbs.MaskQKey
		}
		d.qp.Modify(attr, mask, done)
	}}, step{"arm cq", func(done func(error)) { done(d.cq.ReqNotify(false)) }})
	inOrder(d.l, limit, steps, func(err error) {
		if err == nil {
			d.opened()
		}
		done(d.wrap(err))
	})
}

// wrap says whose error it is.
func (d *end) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", d.name, err)
}

// address is what the peer is told once the end is open.
func (d *end) address() address {
	a := address{gid: d.nic.GID, qpn: d.qp.Num(), psn: d.psn, qkey: qkey}
	if d.mr != nil {
		a.rkey, a.addr = d.mr.RKey(), d.mr.Addr()
	}
	if d.buf != nil {
		a.bufRKey, a.bufAddr = d.buf.RKey(), d.buf.Addr()
	}
	return a
}

// connect brings the QP to RTS towards its peer.
func (d *end) connect(peer address, limit loop.Duration, done func(error)) {
	if peer.err != nil {
		done(fmt.Errorf("%s: its peer could not be opened", d.name))
		return
	}
	d.peer = peer
	attr := d.cfg.attr
	attr.AH.DGID, attr.AH.SGIDIndex = peer.gid, d.nic.GIDIndex
	attr.DestQPN, attr.RQPSN, attr.SQPSN = peer.qpn, peer.psn, d.psn
	rtr, rts := verbs.MaskState, verbs.MaskState|verbs.MaskSQPSN
	if d.cfg.service != verbs.UD {
		rtr |= verbs.MaskAH | verbs.MaskPathMTU | verbs.MaskDestQPN | verbs.MaskRQPSN
	}
	if d.cfg.service == verbs.RC {
		rtr |= verbs.MaskMaxDestRDAtomic | verbs.MaskMinRNRTimer
		rts |= verbs.MaskTimeout | verbs.MaskRetryCnt | verbs.MaskRNRRetry | verbs.MaskMaxRDAtomic
	}
	steps := []step{
		{fmt.Sprintf("modify qp to RTR towards %s QP %#x", peer.gid, peer.qpn), func(done func(error)) { a := attr; a.State = verbs.RTR; d.qp.Modify(a, rtr, done) }},
		{"modify qp to RTS", func(done func(error)) { a := attr; a.State = verbs.RTS; d.qp.Modify(a, rts, done) }},
	}
	if d.cfg.service == verbs.UD {
		steps = append(steps, step{"create ah", func(done func(error)) {
			d.nic.pd.CreateAH(attr.AH, func(ah verbs.AH, err error) {
				d.ah = ah
				done(err)
			})
		}})
	}
	inOrder(d.l, limit, steps, func(err error) { done(d.wrap(err)) })
}

// fail moves the QP to the error state, which flushes what is outstanding.
func (d *end) fail(limit loop.Duration, done func(error)) {
	within(d.l, limit, d.name+": modify qp to ERR", func(done func(error)) {
		d.qp.Modify(verbs.QPAttr{State: verbs.Err}, verbs.MaskState, done)
	}, done)
}

// drain handles completions until there are none, then asks for the next event. A completion
// that comes between the last poll and the request is found by polling once more.
func (d *end) drain() {
	if d.closed || d.cq == nil || d.qp == nil {
		return
	}
	taken := 0
	for armed := false; ; {
		n := d.cq.Poll(d.wcs)
		for i := range d.wcs[:n] {
			d.onWC(&d.wcs[i])
			if d.closed {
				return
			}
		}
		if taken += n; n == 0 {
			if armed {
				break
			}
			if err := d.cq.ReqNotify(false); err != nil {
				d.onBroken(d.wrap(fmt.Errorf("arm cq: %w", err)))
				return
			}
			armed = true
			continue
		}
		if armed = false; taken >= drainLimit {
			d.l.Arm(&d.again, d.l.Now())
			break
		}
	}
	if taken > 0 && d.onDrain != nil {
		d.onDrain()
	}
}

// close destroys what open made, youngest first. It goes on after an error and returns the first. It may be called again.
func (d *end) close(limit loop.Duration, done func(error)) {
	if d.gone {
		done(nil)
		return
	}
	if d.waiting = append(d.waiting, done); len(d.waiting) > 1 {
		return
	}
	d.closed = true
	d.closing()
	d.l.Disarm(&d.again)
	var first error
	var steps []step
	add := func(what string, do func(done func(error))) {
		steps = append(steps, step{what, func(done func(error)) {
			within(d.l, limit, d.name+": "+what, do, func(err error) {
				if first == nil {
					first = err
				}
				done(nil)
			})
		}})
	}
	if d.ah != nil {
		add("destroy ah", d.ah.Destroy)
	}
	if d.qp != nil {
		add("destroy qp", d.qp.Destroy)
	}
	if d.cq != nil {
		add("destroy cq", d.cq.Destroy)
	}
	if d.mr != nil {
		add("deregister memory", d.mr.Dereg)
	}
	if d.mem != nil {
		add("free memory", func(done func(error)) { done(d.mem.Free()) })
	}
	inOrder(d.l, 2*limit, steps, func(error) {
		if d.gone = true; d.nic.dead != "" { // there may be nobody who could do it
			first = nil
		}
		for _, done := range d.waiting {
			done(first)
		}
		d.waiting = nil
	})
}
