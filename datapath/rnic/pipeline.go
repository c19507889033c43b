package rnic

import (
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// pipeline is the device's stages as arithmetic: when work that is given to them now is done. State machines
// act on a packet when it arrives or is made; the stages put off what comes of it.
type pipeline struct {
	st    *Stages
	trace Tracer
	slot  *pcieSlot
	plain bool // no stage costs anything

	doorbells   server // takes work queue elements
	tx, rx      server // take packets
	messageEach time.Duration
	packetEach  time.Duration
	mtt, iommu  *translator
}

// wqeLen is what a work queue element takes, bytes: mlx5's basic block.
const wqeLen = 64

func (h *pipeline) init(c *Config) error {
	h.st, h.trace = &c.Profile.Stages, c.Trace
	pcie := c.PCIe
	if pcie == nil {
		own, err := NewPCIe(h.st.PCIe)
		if err != nil {
			return err
		}
		pcie = own
	}
	h.slot = pcie.attach()
	h.slot.user = h
	h.messageEach, h.packetEach = each(h.st.MessageRate), each(h.st.PacketRate)
	h.mtt, h.iommu = newTranslator(&h.st.MTT), newTranslator(&h.st.IOMMU)
	free := *h.st
	free.Prefetch, free.Jitter, free.PCIe.MaxPayload = 0, 0, 0
	h.plain = free == Stages{} && pcie.c.free()
	return nil
}

// doorbell is when the first of n WQEs that are posted now can be worked on, and how long after it each of the others.
func (h *pipeline) doorbell(now loop.Time, n int) (first loop.Time, each time.Duration) {
	if h.plain {
		return now, 0
	}
	first = h.doorbells.occupy(now.Add(h.st.Doorbell), time.Duration(n)*h.messageEach)
	if h.st.WQEFetch > 0 {
		// What PCIe has to do now is what it waits for; it doesn't hold up what is read until then.
		first = first.Add(h.slot.transfer(now, n*wqeLen, verbs.HostMemory).Sub(now) + h.st.WQEFetch)
	}
	return first, h.messageEach
}

// translate is how long the addresses of n bytes take to be known.
func (h *pipeline) translate(at loop.Time, addr uint64, n int) loop.Time {
	if h.mtt != nil {
		at = h.mtt.at(at, addr, n)
	}
	if h.iommu != nil {
		at = h.iommu.at(at, addr, n)
	}
	return at
}

// transmit is when a packet that its source makes now can leave. Its payload is asked for ahead, as long as the
// source has had something to send without a break.
func (h *pipeline) transmit(now loop.Time, s *sender, f *link.Frame) loop.Time {
	if h.plain && h.trace == nil {
		return now
	}
	at := h.tx.occupy(max(min(s.since, now), now.Add(-h.st.Prefetch)), h.packetEach)
	at = max(at, s.since) // what answers a request that is being checked leaves after that, and holds up nobody else
	n, psn := f.Packet.PayloadLen, f.Packet.BTH.PSN
	if n > 0 && s.addr != 0 {
		known := h.translate(at, s.addr, n)
		// A packet that waits for its translation doesn't hold up the reads of others.
		at = h.slot.readAt(at, n, s.kind).Add(known.Sub(at))
		if h.trace != nil {
			h.tell(s, StageTranslate, known, psn, n)
			h.tell(s, StageDMARead, at, psn, n)
		}
	}
	at = at.Add(h.st.Headers)
	if h.trace != nil {
		h.tell(s, StageHeaders, at, psn, n)
	}
	return at
}

// receive is when ICRC and QP context of a packet that arrives now have been checked.
func (h *pipeline) receive(now loop.Time) loop.Time {
	if h.plain {
		return now
	}
	return h.rx.occupy(now, h.packetEach).Add(h.st.RxContext)
}

// place is when n bytes of a packet that was checked at a time have left the device for memory. Writes keep their
// order, so one whose translation misses holds up those behind it.
func (h *pipeline) place(at loop.Time, addr uint64, n int, kind verbs.MemoryKind) loop.Time {
	if h.plain || n == 0 {
		return at
	}
	return h.slot.writeAt(at, h.translate(at, addr, n), n, kind)
}

// tell traces a sender's packet.
func (h *pipeline) tell(s *sender, stage Stage, at loop.Time, psn roce.PSN, n int) {
	h.trace.Trace(TraceEvent{At: at, QPN: s.qpn, Message: s.message, PSN: psn, Bytes: int32(n), Stage: stage, Responder: s.responder})
}
