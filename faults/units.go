package faults

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// PerSecond is how often something happens in a second of fabric time, written "200/s", "5/ms" or "0.1/us".
type PerSecond float64

var perUnits = []struct {
	name string
	each float64
}{{"/us", 1e6}, {"/ms", 1e3}, {"/s", 1}}

// UnmarshalText reads "200/s", "5/ms" or "0.1/us".
func (p *PerSecond) UnmarshalText(b []byte) error {
	for _, u := range perUnits {
		num, ok := strings.CutSuffix(string(b), u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if err != nil || !(v >= 0) || v*u.each > 1e12 {
			break
		}
		*p = PerSecond(v * u.each)
		return nil
	}
	return fmt.Errorf("%q says no frequency: a number and a unit, such as \"200/s\" or \"5/ms\"", b)
}

// String writes what UnmarshalText reads.
func (p PerSecond) String() string { return strconv.FormatFloat(float64(p), 'f', -1, 64) + "/s" }

// MarshalText writes what UnmarshalText reads.
func (p PerSecond) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// BitErrorRate is the share of bits that flip, written "1e-9".
type BitErrorRate float64

// UnmarshalText reads "1e-9".
func (r *BitErrorRate) UnmarshalText(b []byte) error {
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !(v >= 0 && v < 0.5) {
		return fmt.Errorf("%q is no bit error rate from 0 to 0.5 (write \"1e-9\")", b)
	}
	*r = BitErrorRate(v)
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (r BitErrorRate) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(r), 'g', -1, 64), nil
}

// Packet is the probability that at least one of n bytes' bits flips: 1 − (1 − r)^8n.
func (r BitErrorRate) Packet(n int) float64 {
	return -math.Expm1(8 * float64(n) * math.Log1p(-float64(r)))
}

// Priorities are some of the eight, 0 to 7.
type Priorities []uint8

// Bits has bit i set for priority i.
func (p Priorities) Bits() (bits uint8) {
	for _, i := range p {
		bits |= 1 << (i & 7)
	}
	return bits
}

// Half is a side of flow control. The empty half is both.
type Half string

// The halves.
const (
	HalfSend Half = "send" // the port pauses nobody
	HalfObey Half = "obey" // the port doesn't let itself be paused
)

// Knob is the value of a parameter, whatever its unit: who has the parameter reads it.
type Knob string

// UnmarshalText takes any text.
func (k *Knob) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		return errors.New("a parameter needs a value")
	}
	*k = Knob(b)
	return nil
}

// MarshalText writes the text.
func (k Knob) MarshalText() ([]byte, error) { return []byte(k), nil }
