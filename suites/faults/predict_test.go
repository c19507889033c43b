package faults_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/rocebed/rocebed/faults/packet"
)

// What must come of what left, by the oracle's verdicts, and how what came is held against it.

// wanted is a packet that must come.
type wanted struct {
	data     []byte
	hurtFrom int // one bit from this byte on, to hurtTo, is another one
	hurtTo   int
	left     time.Duration
	late     time.Duration // how much later it goes on than it left
	floats   bool          // others may overtake it: only when it comes is known
}

const l3, l4, bth = 14, 34, 42

// become is what a packet looks like when it comes.
func (v *verdict) become(f *frame) wanted {
	w := wanted{data: slices.Clone(f.data), left: f.at}
	if v.setDSCP {
		w.data[15] = w.data[15]&3 | byte(v.dscp)<<2
	}
	if v.ce {
		w.data[15] |= 3
	}
	if v.clear {
		w.data[15] &^= 3
	}
	if w.data[15] != f.data[15] { // the header's checksum, all of it anew
		checksum(w.data)
	}
	if v.hurt {
		payload := bth + headers(f)
		end := l3 + int(binary.BigEndian.Uint16(f.data[16:]))
		switch v.part {
		case packet.Payload:
			w.hurtFrom, w.hurtTo = payload, end-4
			if payload == end-4 { // it carries nothing
				w.hurtFrom, w.hurtTo = bth, bth+12
			}
		case packet.Header:
			w.hurtFrom, w.hurtTo = bth, payload
		case packet.ICRC:
			w.hurtFrom, w.hurtTo = end-4, end
		}
	}
	if v.truncate > 0 && v.truncate < len(w.data) {
		w.data = w.data[:v.truncate]
	}
	return w
}

// headers is how long the transport headers are (InfiniBand specification, volume 1, table 38 and chapter 9).
func headers(f *frame) int {
	n := 12
	switch op := f.Opcode(); op {
	case 0x81: // CNP: 16 reserved bytes
		return 28
	case 6, 0xa, 0xc: // RETH
		n += 16
	case 0xb:
		n += 20
	case 3, 5, 9, 0xd, 0xf, 0x10, 0x11, 0x16, 0x17: // ImmDt, IETH or AETH
		n += 4
	case 0x12: // AETH, AtomicAckETH
		n += 12
	case 0x13, 0x14: // AtomicETH
		n += 28
	}
	return n
}

// held is a packet that waits for others, with its copies.
type held struct {
	all   []wanted
	where to
	left  int
	until time.Duration // 0: without end
}

// predict is what must come of what left, in its order; hits are the packets that something was done to. heal is when what is held goes on.
func (o *oracle) predict(left []frame, heal time.Duration) (out []wanted, hits int) {
	var waiting []*held
	goOn := func(k to) {
		for again := true; again; {
			again = false
			for i, h := range waiting {
				if h.where != k {
					continue
				}
				if h.left--; h.left == 0 {
					waiting = slices.Delete(waiting, i, i+1)
					out = append(out, h.all...)
					again = true // it has gone on, too
					break
				}
			}
		}
	}
	release := func(now time.Duration) {
		waiting = slices.DeleteFunc(waiting, func(h *held) bool {
			if h.until == 0 || h.until > now {
				return false
			}
			for _, w := range h.all {
				w.late, w.floats = h.until-w.left, true
				out = append(out, w)
			}
			return true
		})
	}
	for i := range left {
		f := &left[i]
		release(f.at)
		v := o.look(f)
		if v.hit {
			hits++
		}
		if v.drop {
			continue
		}
		w := v.become(f)
		w.late, w.floats = v.delay, v.delay > 0
		all := slices.Repeat([]wanted{w}, 1+v.copies)
		var k to
		if f.isRoCE() {
			k = to{netip.AddrFrom16(f.DstAddr()).Unmap(), f.DestQP()}
		}
		if v.hold > 0 {
			h := &held{all: all, where: k, left: v.hold}
			if v.atMost > 0 {
				h.until = f.at + v.atMost
			}
			waiting = append(waiting, h)
			continue
		}
		out = append(out, all...)
		goOn(k)
	}
	release(heal)
	for _, h := range waiting {
		for _, w := range h.all {
			w.floats = true
			out = append(out, w)
		}
	}
	return out, hits
}

// is says whether a packet that came is the one wanted; damage is a bit.
func (w *wanted) is(f *frame) bool {
	if w.hurtTo == 0 {
		return bytes.Equal(w.data, f.data)
	}
	if len(w.data) != len(f.data) {
		return false
	}
	flipped := 0
	for i := range w.data {
		for x := w.data[i] ^ f.data[i]; x != 0; x &= x - 1 {
			if flipped++; i < w.hurtFrom || i >= w.hurtTo {
				return false
			}
		}
	}
	return flipped == 1
}

// compare holds what came against what is wanted: the same packets in the same order, but for those that others may overtake, which must come when they are due.
// exact: times are to the nanosecond.
func compare(want []wanted, came []frame, exact bool) error {
	var floating []wanted
	i := 0
	for n := range came {
		f := &came[n]
		for i < len(want) && want[i].floats {
			floating = append(floating, want[i])
			i++
		}
		if i < len(want) && want[i].is(f) {
			if took := f.at - want[i].left; exact && want[i].late == 0 && want[i].left > 0 && took < linkDelay {
				return fmt.Errorf("packet %d took %v over a link of %v", n, took, linkDelay)
			}
			i++
			continue
		}
		at := slices.IndexFunc(floating, func(w wanted) bool { return w.is(f) })
		if at < 0 {
			next := "nothing more"
			if i < len(want) {
				next = fmt.Sprintf("%d bytes %x", len(want[i].data), head(want[i].data))
			}
			return fmt.Errorf("packet %d of those that came: want %s\nor one of %d that may come later, got %d bytes %x", n, next, len(floating), len(f.data), head(f.data))
		}
		w := floating[at]
		if took := f.at - w.left; w.late > 0 && (exact && took != w.late+linkDelay || took < w.late) {
			return fmt.Errorf("packet %d came %v after it had left, want %v and the link's %v", n, took, w.late, linkDelay)
		}
		floating = slices.Delete(floating, at, at+1)
	}
	for ; i < len(want); i++ {
		floating = append(floating, want[i])
	}
	if len(floating) > 0 {
		return fmt.Errorf("%d packets never came, the first of %d bytes %x", len(floating), len(floating[0].data), head(floating[0].data))
	}
	return nil
}
