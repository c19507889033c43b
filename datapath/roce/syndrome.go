package roce

import "strconv"

// Syndrome is the AETH's first byte: what a responder says of a request (9.7.5).
// Three bits say what kind, five what exactly.
type Syndrome uint8

// SyndromeKind is a syndrome's upper three bits.
type SyndromeKind uint8

// The kinds of syndromes; the other values are reserved.
const (
	SyndromeACK    SyndromeKind = 0 // the value is an end-to-end credit code
	SyndromeRNRNAK SyndromeKind = 1 // the value is an RNR timer code, an index into verbs.RNRDelay
	SyndromeNAK    SyndromeKind = 3 // the value is a NAKCode
)

// NAKCode says why a request was refused (9.7.5.2).
type NAKCode uint8

// The NAK codes; the rest of the 32 is reserved.
const (
	NAKPSNSequenceError       NAKCode = 0
	NAKInvalidRequest         NAKCode = 1
	NAKRemoteAccessError      NAKCode = 2
	NAKRemoteOperationalError NAKCode = 3
	NAKInvalidRDRequest       NAKCode = 4
)

// CreditsInvalid is the credit code of a responder that gives no credits: the requester isn't limited.
const CreditsInvalid = 31

const syndromeValue = 0x1f

// ACK is a positive acknowledgement with a credit code, 0 to 31.
func ACK(credits uint8) Syndrome { return Syndrome(SyndromeACK)<<5 | Syndrome(credits&syndromeValue) }

// RNRNAK is "receiver not ready" with a timer code, 0 to 31.
func RNRNAK(timer uint8) Syndrome {
	return Syndrome(SyndromeRNRNAK)<<5 | Syndrome(timer&syndromeValue)
}

// NAK is a negative acknowledgement.
func NAK(code NAKCode) Syndrome { return Syndrome(SyndromeNAK)<<5 | Syndrome(code&syndromeValue) }

// Kind is the syndrome's.
func (s Syndrome) Kind() SyndromeKind { return SyndromeKind(s >> 5) }

// Value is the five bits: a credit code, a timer code or a NAKCode.
func (s Syndrome) Value() uint8 { return uint8(s & syndromeValue) }

// Credits is the number of receives that a credit code stands for (9.7.7.2): 2^(c/2) for even codes,
// half as much again as the code before for odd ones, up to 32768. Limited is false for CreditsInvalid.
func Credits(code uint8) (n uint32, limited bool) {
	switch code &= syndromeValue; {
	case code == CreditsInvalid:
		return 0, false
	case code < 4:
		return uint32(code), true
	case code%2 == 0:
		return 1 << (code / 2), true
	default:
		return 3 << (code/2 - 1), true
	}
}

// CreditsFor is the largest credit code that stands for at most n receives.
func CreditsFor(n uint32) uint8 {
	code := uint8(0)
	for c := uint8(1); c < CreditsInvalid; c++ {
		if have, _ := Credits(c); have > n {
			break
		}
		code = c
	}
	return code
}

// String writes "NAK PSN sequence error", "RNR NAK timer 12", "ACK credits 31".
func (s Syndrome) String() string {
	v := strconv.Itoa(int(s.Value()))
	switch s.Kind() {
	case SyndromeACK:
		return "ACK credits " + v
	case SyndromeRNRNAK:
		return "RNR NAK timer " + v
	case SyndromeNAK:
		return "NAK " + NAKCode(s.Value()).String()
	}
	return "reserved syndrome " + strconv.Itoa(int(s))
}

// String writes the code as the specification's table does.
func (c NAKCode) String() string {
	names := [...]string{"PSN sequence error", "invalid request", "remote access error", "remote operational error", "invalid RD request"}
	if int(c) < len(names) {
		return names[c]
	}
	return "reserved code " + strconv.Itoa(int(c))
}
