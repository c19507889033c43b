package link

import (
	"encoding/binary"

	"github.com/rocebed/rocebed/datapath/roce"
)

// FlowHash is a frame's Flow: a hash of the five-tuple. Switches mix their own seed in.
func FlowHash(src, dst roce.Addr, proto uint8, sport, dport uint16) uint32 {
	le := binary.LittleEndian
	h := uint64(proto)<<32 | uint64(sport)<<16 | uint64(dport)
	for _, w := range [4]uint64{le.Uint64(src[:]), le.Uint64(src[8:]), le.Uint64(dst[:]), le.Uint64(dst[8:])} {
		h = mix(h ^ w)
	}
	return uint32(h ^ h>>32)
}

// mix is SplitMix64's step: its increment, then its finaliser (Steele, Lea and Flood, 2014; variant 13 of Stafford's).
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// PriorityMap gives each DSCP its priority, 0 to 7: which queue, and which bit of PFC.
type PriorityMap [64]uint8

// DefaultPriorities is RoCE's custom: DSCP 26 is priority 3, 48 (CNP) is 6, the others' class
// selector, DSCP/8, is theirs.
func DefaultPriorities() (m PriorityMap) {
	for d := range m {
		m[d] = uint8(d >> 3)
	}
	m[26], m[48] = 3, 6
	return m
}

// Of is the priority of a traffic class (DSCP and ECN).
func (m *PriorityMap) Of(trafficClass uint8) uint8 { return m[trafficClass>>2] }
