package rnic

import (
	"errors"
	"time"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// Faults are what is wrong with a device at run time. The zero value is a sound one.
type Faults struct {
	// AckDelay is by how much later each ACK and NAK leaves.
	AckDelay time.Duration
	// AckEvery and AckWait are in place of the profile's AckEvery and AckDelay, where AckEvery isn't 0.
	AckEvery int
	AckWait  time.Duration
	// MuteCNP has no CNP sent; CNPGap is the least time between two, whichever flows they are for.
	MuteCNP bool
	CNPGap  time.Duration
	// Storm is a port that pauses its peer for nothing.
	Storm Storm
	// DMA is the most that the device writes to memory, bits a second with PCIe's overheads; 0: what its link carries.
	DMA uint64
	// MTT is in place of the profile's, where it has entries. The cache starts empty, and is empty again when it ends.
	MTT Translate
	// DCQCN is in place of the profile's parameters, where it is any.
	DCQCN dcqcn.Params
	// Source is in place of the port's address in all that is sent, where it is any.
	Source roce.Addr
}

// FaultCounters are what Faults did.
type FaultCounters struct {
	AcksDelayed uint64 // ACKs and NAKs
	AcksLeftOut uint64 // that were asked for, and of which another spoke
	CNPsLeftOut uint64
	RateChanges uint64 // of flows, by DCQCN's other parameters
	Astray      uint64 // packets that were made with another source
}

// faulty is a device's faults.
type faulty struct {
	Faults
	count   FaultCounters
	nextCNP loop.Time
	astray  bool                          // packets have another source
	carried struct{ hits, misses uint64 } // of translation caches that are gone
}

// Faults are those in force.
func (d *Device) Faults() Faults { return d.faulty.Faults }

// FaultCounters count what faults did so far.
func (d *Device) FaultCounters() FaultCounters {
	c := d.faulty.count
	if d.faulty.DCQCN != (dcqcn.Params{}) {
		c.RateChanges += d.cc.reaction.Counters.Changes
	}
	return c
}

// SetFaults puts faults in force, in place of those that were.
func (d *Device) SetFaults(f Faults) error {
	if f.AckDelay < 0 || f.AckEvery < 0 || f.AckWait < 0 || f.CNPGap < 0 || f.AckEvery > 1 && f.AckWait == 0 {
		return d.fail("set faults", errors.New("times and counts must not be negative, and an ACK that waits for more packets needs an end of its wait"))
	}
	if err := errors.Join(f.MTT.Validate(), f.Storm.validate()); err != nil {
		return d.fail("set faults", err)
	}
	old := d.faulty.Faults
	if f.DCQCN != old.DCQCN {
		if err := d.otherDCQCN(&f.DCQCN); err != nil {
			return d.fail("set faults", err)
		}
	}
	d.faulty.Faults = f
	d.faulty.astray = f.Source != roce.Addr{}
	if f.DMA != old.DMA {
		rate := f.DMA
		if rate == 0 {
			rate = d.hw.slot.nic.trained.Rate()
		}
		d.hw.slot.nic.write.setRate(rate)
	}
	if f.MTT != old.MTT {
		d.retranslate(&f.MTT)
	}
	if f.DMA != 0 || f.MTT.Entries != 0 {
		d.hw.plain = false
	}
	if f.Storm != old.Storm {
		d.port.storm.set(&d.port, f.Storm)
	}
	return nil
}

// otherDCQCN puts other parameters in force, or the profile's back where there are none.
func (d *Device) otherDCQCN(p *dcqcn.Params) error {
	if d.cfg.Profile.DCQCN == nil {
		return errors.New("it has no DCQCN")
	}
	count := d.FaultCounters().RateChanges
	if *p == (dcqcn.Params{}) {
		p = nil
	}
	if err := d.retune(p); err != nil {
		return err
	}
	d.faulty.count.RateChanges = count
	return nil
}

// retranslate puts another translation cache in the place of the profile's, or the profile's back. Both count as one.
func (d *Device) retranslate(t *Translate) {
	h, f := &d.hw, &d.faulty
	was := h.mtt
	if t.Entries == 0 {
		h.mtt = newTranslator(&h.st.MTT)
	} else {
		h.mtt = newTranslator(t)
	}
	if was != nil {
		f.carried.hits, f.carried.misses = f.carried.hits+was.hits, f.carried.misses+was.misses
	}
}

// FailQPs moves those connected queue pairs to the error state that match says by their number, and says how many.
func (d *Device) FailQPs(match func(qpn uint32) bool) (n int) {
	now := d.loop.Now()
	for _, q := range d.qps {
		if q != nil && q.state >= verbs.RTR && q.state != verbs.Err && match(q.num) {
			q.fail(now)
			n++
		}
	}
	return n
}

// late delays an ACK or a NAK, and says whether it did.
func (r *responder) late(psn roce.PSN, s roce.Syndrome, at loop.Time) bool {
	d := r.q.dev
	delay := d.faulty.AckDelay
	if delay == 0 {
		return false
	}
	d.faulty.count.AcksDelayed++
	due := max(at, d.loop.Now()).Add(delay)
	d.loop.Arm(&loop.Timer{Fire: func() {
		if r.q.state >= verbs.RTR && r.q.state != verbs.Err && !r.q.dead {
			r.sendAnswer(psn, s, due)
		}
	}}, due)
	return true
}

// ackPolicy is for how many packets one ACK is, and how long it waits with one.
func (d *Device) ackPolicy() (every int, wait time.Duration) {
	if f := &d.faulty; f.AckEvery > 0 {
		return f.AckEvery, f.AckWait
	}
	return d.cfg.Profile.AckEvery, d.cfg.Profile.AckDelay
}

// mutes says whether a CNP that is due is not sent.
func (f *faulty) mutes(now loop.Time) bool {
	if f.MuteCNP || f.CNPGap > 0 && now < f.nextCNP {
		f.count.CNPsLeftOut++
		return true
	}
	f.nextCNP = now.Add(f.CNPGap)
	return false
}

// PCIe is the switch that the device is at.
func (d *Device) PCIe() *PCIe { return d.hw.slot.p }
