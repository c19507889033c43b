package roce

import "math/bits"

// Extension headers of a View. The result is the header's zero value where Info hasn't the flag.

// ext is the bytes from an extension header on, nil where the packet has none of that.
func (v *View) ext(f Flags) []byte {
	o := v.info.offset[bits.TrailingZeros32(uint32(f))]
	if o == 0 {
		return nil
	}
	return v.frame[v.bth+uint16(o):]
}

// DETH is the Datagram Extended Transport Header.
func (v *View) DETH() (h DETH) {
	if p := v.ext(HasDETH); p != nil {
		h.get(p)
	}
	return h
}

// FETH is the FLUSH Extended Transport Header.
func (v *View) FETH() FETH { return FETH(v.word(HasFETH)) }

// RETH is the RDMA Extended Transport Header.
func (v *View) RETH() (h RETH) {
	if p := v.ext(HasRETH); p != nil {
		h.get(p)
	}
	return h
}

// AETH is the ACK Extended Transport Header.
func (v *View) AETH() (h AETH) {
	if p := v.ext(HasAETH); p != nil {
		h.get(p)
	}
	return h
}

// AtomicETH is the Atomic Extended Transport Header.
func (v *View) AtomicETH() (h AtomicETH) {
	if p := v.ext(HasAtomicETH); p != nil {
		h.get(p)
	}
	return h
}

// AtomicAckETH is the value that the atomic operation found.
func (v *View) AtomicAckETH() uint64 {
	if p := v.ext(HasAtomicAckETH); p != nil {
		return be.Uint64(p)
	}
	return 0
}

// ImmDt is the immediate data.
func (v *View) ImmDt() uint32 { return v.word(HasImmDt) }

// IETH is the R_Key to invalidate.
func (v *View) IETH() uint32 { return v.word(HasIETH) }

func (v *View) word(f Flags) uint32 {
	if p := v.ext(f); p != nil {
		return be.Uint32(p)
	}
	return 0
}
