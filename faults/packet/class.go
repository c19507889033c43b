package packet

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/topo/strict"
)

// Class is what a packet is: a bit each, so that a set of them is a mask.
type Class uint32

// The classes. Every packet is of exactly one.
const (
	Send Class = 1 << iota
	Write
	ReadRequest
	ReadResponse
	Atomic    // the request
	AtomicAck // its answer
	Ack
	NakSequence
	NakRNR
	NakInvalid
	NakAccess
	NakOperation
	NakOther // a reserved syndrome, invalid RD request
	CNP
	Flush   // FLUSH and ATOMIC WRITE
	Other   // RoCE with an opcode that nobody knows
	IP      // IP, and no RoCE
	classes = iota
)

// Groups of classes.
const (
	Nak  = NakSequence | NakRNR | NakInvalid | NakAccess | NakOperation | NakOther
	Data = Send | Write | ReadResponse
	// Any is every RoCE packet: what an event without a class matches.
	Any = Class(1)<<classes - 1 - IP
)

// words are the classes' names, those of groups too. Lists of names keep this order.
var words = []struct {
	name  string
	class Class
}{
	{"any", Any}, {"data", Data}, {"send", Send}, {"write", Write}, {"read-request", ReadRequest}, {"read-response", ReadResponse},
	{"atomic", Atomic}, {"atomic-ack", AtomicAck}, {"ack", Ack}, {"nak", Nak}, {"nak:seq", NakSequence}, {"nak:rnr", NakRNR},
	{"nak:inv", NakInvalid}, {"nak:access", NakAccess}, {"nak:op", NakOperation}, {"nak:other", NakOther}, {"cnp", CNP}, {"flush", Flush},
	{"other", Other}, {"ip", IP},
}

// ClassNames are the names that a class or a group of classes may be given by.
func ClassNames() []string {
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = w.name
	}
	return names
}

// UnmarshalText reads a class's name, in whatever case: "CNP" is what people write.
func (c *Class) UnmarshalText(b []byte) error {
	for _, w := range words {
		if strings.EqualFold(w.name, string(b)) {
			*c = w.class
			return nil
		}
	}
	return fmt.Errorf("%q is no class of packets%s", b, strict.DidYouMean(string(b), ClassNames()))
}

// String writes the name, or several with plus signs between them.
func (c Class) String() string {
	for _, w := range words {
		if w.class == c {
			return w.name
		}
	}
	var names []string
	for _, w := range words {
		if bits.OnesCount32(uint32(w.class)) == 1 && c&w.class != 0 {
			names = append(names, w.name)
		}
	}
	return strings.Join(names, "+")
}

// MarshalText writes the name.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Classes are some classes: one, or a list.
type Classes []Class

// UnmarshalText reads one class.
func (c *Classes) UnmarshalText(b []byte) error {
	var one Class
	err := one.UnmarshalText(b)
	*c = Classes{one}
	return err
}

// Mask is all of them together; Any where there is none.
func (c Classes) Mask() (all Class) {
	if len(c) == 0 {
		return Any
	}
	for _, one := range c {
		all |= one
	}
	return all
}

// Position is a packet's place in its message: a bit each; the only packet of a message is both first and last.
type Position uint8

// The positions.
const (
	First Position = 1 << iota
	Middle
	Last
	anywhere = First | Middle | Last
)

var positions = []struct {
	name string
	p    Position
}{{"first", First}, {"middle", Middle}, {"last", Last}}

// UnmarshalText reads "first", "middle" or "last".
func (p *Position) UnmarshalText(b []byte) error {
	var names []string
	for _, w := range positions {
		if w.name == string(b) {
			*p = w.p
			return nil
		}
		names = append(names, w.name)
	}
	return fmt.Errorf("%q is no place in a message%s", b, strict.DidYouMean(string(b), names))
}

// MarshalText writes the name.
func (p Position) MarshalText() ([]byte, error) {
	i := slices.IndexFunc(positions, func(w struct {
		name string
		p    Position
	}) bool {
		return w.p == p
	})
	if i < 0 {
		return nil, fmt.Errorf("%d is no place in a message", p)
	}
	return []byte(positions[i].name), nil
}

// Parts are some positions: one, or a list.
type Parts []Position

// UnmarshalText reads one position.
func (p *Parts) UnmarshalText(b []byte) error {
	var one Position
	err := one.UnmarshalText(b)
	*p = Parts{one}
	return err
}

func (p Parts) mask() (all Position) {
	if len(p) == 0 {
		return anywhere
	}
	for _, one := range p {
		all |= one
	}
	return all
}

// ECN is a codepoint of the ECN field.
type ECN roce.ECN

var codepoints = []string{roce.NotECT: "not-ect", roce.ECT1: "ect1", roce.ECT0: "ect0", roce.CE: "ce"}

// UnmarshalText reads "not-ect", "ect0", "ect1" or "ce".
func (e *ECN) UnmarshalText(b []byte) error {
	i := slices.Index(codepoints, string(b))
	if i < 0 {
		return fmt.Errorf("%q is no ECN codepoint%s", b, strict.DidYouMean(string(b), codepoints))
	}
	*e = ECN(i)
	return nil
}

// MarshalText writes the name.
func (e ECN) MarshalText() ([]byte, error) { return []byte(codepoints[e&3]), nil }

// ECNs are some codepoints: one, or a list.
type ECNs []ECN

// UnmarshalText reads one codepoint.
func (e *ECNs) UnmarshalText(b []byte) error {
	var one ECN
	err := one.UnmarshalText(b)
	*e = ECNs{one}
	return err
}

func (e ECNs) mask() (all uint8) {
	if len(e) == 0 {
		return 0xf
	}
	for _, one := range e {
		all |= 1 << (one & 3)
	}
	return all
}
