package workloads

import (
	"encoding/binary"
	"math/bits"
)

// golden is 2^64 divided by the golden ratio, odd: SplitMix64's increment (Steele, Lea and
// Flood, "Fast splittable pseudorandom number generators", 2014).
const golden = 0x9e3779b97f4a7c15

// mix64 is SplitMix64's finaliser (variant 13 of Stafford's): every output bit depends on
// every input bit.
func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// streamKey is what makes a stream of its own of (seed, workload, purpose, flow).
func streamKey(seed uint64, workload, purpose string, flow int) uint64 {
	k := mix64(seed + golden)
	for _, s := range [...]string{workload, purpose} {
		for i := range len(s) {
			k = mix64(k^uint64(s[i])) + golden
		}
		k = mix64(k + uint64(len(s)))
	}
	return mix64(k + uint64(flow)*golden)
}

// Stream is an endless string of bytes that the seed, the workload and the flow determine.
// Any part of it can be made without the parts before.
type Stream struct{ key uint64 }

// NewStream is the payload of one flow of a workload.
func NewStream(seed uint64, workload string, flow int) Stream {
	return Stream{streamKey(seed, workload, "payload", flow)}
}

// word is the stream's i-th eight bytes, little-endian.
func (s Stream) word(i uint64) uint64 { return mix64(s.key + i*golden) }

// Byte is the byte at an offset.
func (s Stream) Byte(off uint64) byte { return byte(s.word(off/8) >> (off % 8 * 8)) }

// Fill writes the stream's bytes from off on into dst.
func (s Stream) Fill(dst []byte, off uint64) { s.fill(dst, off, 0) }

// Poison fills dst with bytes that differ, each of them, from the stream's at off: memory
// that a message is still to arrive in.
func (s Stream) Poison(dst []byte, off uint64) { s.fill(dst, off, ^uint64(0)) }

func (s Stream) fill(dst []byte, off, mask uint64) {
	for len(dst) > 0 && off%8 != 0 {
		dst[0] = s.Byte(off) ^ byte(mask)
		dst, off = dst[1:], off+1
	}
	state := s.key + off/8*golden
	for len(dst) >= 32 {
		d := dst[:32:32]
		binary.LittleEndian.PutUint64(d[0:], mix64(state)^mask)
		binary.LittleEndian.PutUint64(d[8:], mix64(state+golden)^mask)
		binary.LittleEndian.PutUint64(d[16:], mix64(state+golden*2&(1<<64-1))^mask)
		binary.LittleEndian.PutUint64(d[24:], mix64(state+golden*3&(1<<64-1))^mask)
		state += golden * 4 & (1<<64 - 1)
		dst, off = dst[32:], off+32
	}
	for ; len(dst) > 0; dst, off = dst[1:], off+1 {
		dst[0] = s.Byte(off) ^ byte(mask)
	}
}

// Check returns the index of the first byte of got that isn't the stream's at off, or −1.
func (s Stream) Check(got []byte, off uint64) int {
	at := 0
	for at < len(got) && (off+uint64(at))%8 != 0 {
		if got[at] != s.Byte(off+uint64(at)) {
			return at
		}
		at++
	}
	state := s.key + (off+uint64(at))/8*golden
	for len(got)-at >= 32 {
		g := got[at : at+32 : at+32]
		d0 := binary.LittleEndian.Uint64(g[0:]) ^ mix64(state)
		d1 := binary.LittleEndian.Uint64(g[8:]) ^ mix64(state+golden)
		d2 := binary.LittleEndian.Uint64(g[16:]) ^ mix64(state+golden*2&(1<<64-1))
		d3 := binary.LittleEndian.Uint64(g[24:]) ^ mix64(state+golden*3&(1<<64-1))
		if d0|d1|d2|d3 != 0 {
			for i, d := range [...]uint64{d0, d1, d2, d3} {
				if d != 0 {
					return at + i*8 + bits.TrailingZeros64(d)/8
				}
			}
		}
		state += golden * 4 & (1<<64 - 1)
		at += 32
	}
	for ; at < len(got); at++ {
		if got[at] != s.Byte(off+uint64(at)) {
			return at
		}
	}
	return -1
}

// guardLen is how many bytes are kept between and around the places that messages go to.
const guardLen = 64

// guardByte is what guard bytes hold, by position: a shifted guard is a broken one.
func guardByte(i int) byte { return 0xa5 ^ byte(i) }

func fillGuard(g []byte) {
	for i := range g {
		g[i] = guardByte(i)
	}
}

// checkGuard returns the index of the first byte that has changed, or −1.
func checkGuard(g []byte) int {
	for i, b := range g {
		if b != guardByte(i) {
			return i
		}
	}
	return -1
}
