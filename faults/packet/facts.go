package packet

import "github.com/rocebed/rocebed/datapath/roce"

// Facts are what a Matcher knows of a packet.
type Facts struct {
	Dst          roce.Addr
	DestQP       uint32
	PSN          roce.PSN
	Opcode       roce.Opcode
	Syndrome     roce.Syndrome // of an acknowledgement
	TrafficClass uint8
	RoCE         bool // else it is IP alone, and only TrafficClass counts
}

// Of are the facts of a frame; false: it isn't IP, and no event is about it.
func Of(v *roce.View) (f Facts, ok bool) {
	switch k := v.Kind(); {
	case k < roce.KindIP:
		return f, false
	case k < roce.KindRoCE:
		return Facts{TrafficClass: v.TrafficClass()}, true
	}
	f = Facts{Dst: v.DstAddr(), DestQP: v.DestQP(), PSN: v.PSN(), Opcode: v.Opcode(), TrafficClass: v.TrafficClass(), RoCE: true}
	if v.Info().Is(roce.HasAETH) {
		f.Syndrome = v.AETH().Syndrome
	}
	return f, true
}

// OfPacket are the facts of a packet in struct form.
func OfPacket(p *roce.Packet) Facts {
	return Facts{Dst: p.Dst, DestQP: p.BTH.DestQP, PSN: p.BTH.PSN, Opcode: p.BTH.Opcode, Syndrome: p.AETH.Syndrome, TrafficClass: p.TrafficClass, RoCE: true}
}

// stream is what a connection sends in one direction whose PSNs are passed in an order of their own.
type stream uint8

// The streams. The PSNs of requests are the sender's, those of the others the receiver's.
const (
	requests  stream = iota
	responses        // READ responses and answers to atomics
	acks
	naks
	streams
	unsequenced = streams // CNPs, what nobody knows
)

// opcode is what an opcode alone says of a packet.
type opcode struct {
	class    Class // of an acknowledgement: Ack, whose syndrome says more
	position Position
	stream   stream
}

var opcodes = func() (t [256]opcode) {
	for i := range t {
		info := roce.Opcode(i).Info()
		o := opcode{class: Other, stream: unsequenced}
		switch info.Operation {
		case roce.OpSend:
			o.class, o.stream = Send, requests
		case roce.OpRDMAWrite:
			o.class, o.stream = Write, requests
		case roce.OpRDMAReadRequest:
			o.class, o.stream = ReadRequest, requests
		case roce.OpCmpSwap, roce.OpFetchAdd:
			o.class, o.stream = Atomic, requests
		case roce.OpFlush, roce.OpAtomicWrite:
			o.class, o.stream = Flush, requests
		case roce.OpRDMAReadResponse:
			o.class, o.stream = ReadResponse, responses
		case roce.OpAtomicAcknowledge:
			o.class, o.stream = AtomicAck, responses
		case roce.OpAcknowledge:
			o.class, o.stream = Ack, acks
		case roce.OpCNP:
			o.class = CNP
		}
		if info.Any(roce.Starts) {
			o.position |= First
		}
		if info.Any(roce.Middle) {
			o.position |= Middle
		}
		if info.Any(roce.Ends) {
			o.position |= Last
		}
		if o.position == 0 { // of no message: a message of its own
			o.position = First | Last
		}
		t[i] = o
	}
	return t
}()

// syndromes is the class of an acknowledgement.
var syndromes = func() (t [256]Class) {
	for i := range t {
		s := roce.Syndrome(i)
		switch t[i] = NakOther; s.Kind() {
		case roce.SyndromeACK:
			t[i] = Ack
		case roce.SyndromeRNRNAK:
			t[i] = NakRNR
		case roce.SyndromeNAK:
			switch roce.NAKCode(s.Value()) {
			case roce.NAKPSNSequenceError:
				t[i] = NakSequence
			case roce.NAKInvalidRequest:
				t[i] = NakInvalid
			case roce.NAKRemoteAccessError:
				t[i] = NakAccess
			case roce.NAKRemoteOperationalError:
				t[i] = NakOperation
			}
		}
	}
	return t
}()

// classify is what a packet is, its place in its message, and the stream that its PSN belongs to.
func (f *Facts) classify() opcode {
	if !f.RoCE {
		return opcode{IP, First | Last, unsequenced}
	}
	o := opcodes[f.Opcode]
	if o.class == Ack {
		if o.class = syndromes[f.Syndrome]; o.class != Ack {
			o.stream = naks
		}
	}
	return o
}

// Class is the packet's.
func (f *Facts) Class() Class { return f.classify().class }
