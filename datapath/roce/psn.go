package roce

// PSN is a packet sequence number: 24 bits, which wrap. Message sequence numbers are compared in the
// same way. Two PSNs can be ordered when they are less than 2^23 apart (9.7.2: of all PSNs, one half
// is before and one half is after a given one).
type PSN uint32

const (
	psnBits = 24
	// PSNMask is the largest PSN.
	PSNMask PSN = 1<<psnBits - 1
)

// Add is the PSN n later, or earlier where n is negative.
func (p PSN) Add(n int) PSN { return PSN(uint32(p)+uint32(n)) & PSNMask }

// Next is the PSN after this one.
func (p PSN) Next() PSN { return (p + 1) & PSNMask }

// Sub is how far p is after q: from -2^23 to 2^23-1.
func (p PSN) Sub(q PSN) int {
	const spare = 32 - psnBits
	return int(int32(uint32(p)<<spare-uint32(q)<<spare) >> spare)
}

// Before says that p comes before q.
func (p PSN) Before(q PSN) bool { return p.Sub(q) < 0 }

// After says that p comes after q.
func (p PSN) After(q PSN) bool { return p.Sub(q) > 0 }

// In says that p is one of the n PSNs from first on, n at most 2^23.
func (p PSN) In(first PSN, n int) bool { d := p.Sub(first); return d >= 0 && d < n }
