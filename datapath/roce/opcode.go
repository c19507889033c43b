package roce

import "fmt"

// Opcode is the BTH's first byte: a transport in the upper three bits, an operation in the lower
// five (9.2).
type Opcode uint8

// Reliable connection.
const (
	RCSendFirst                  Opcode = 0x00
	RCSendMiddle                 Opcode = 0x01
	RCSendLast                   Opcode = 0x02
	RCSendLastWithImmediate      Opcode = 0x03
	RCSendOnly                   Opcode = 0x04
	RCSendOnlyWithImmediate      Opcode = 0x05
	RCRDMAWriteFirst             Opcode = 0x06
	RCRDMAWriteMiddle            Opcode = 0x07
	RCRDMAWriteLast              Opcode = 0x08
	RCRDMAWriteLastWithImmediate Opcode = 0x09
	RCRDMAWriteOnly              Opcode = 0x0a
	RCRDMAWriteOnlyWithImmediate Opcode = 0x0b
	RCRDMAReadRequest            Opcode = 0x0c
	RCRDMAReadResponseFirst      Opcode = 0x0d
	RCRDMAReadResponseMiddle     Opcode = 0x0e
	RCRDMAReadResponseLast       Opcode = 0x0f
	RCRDMAReadResponseOnly       Opcode = 0x10
	RCAcknowledge                Opcode = 0x11
	RCAtomicAcknowledge          Opcode = 0x12
	RCCmpSwap                    Opcode = 0x13
	RCFetchAdd                   Opcode = 0x14
	RCSendLastWithInvalidate     Opcode = 0x16
	RCSendOnlyWithInvalidate     Opcode = 0x17
	RCFlush                      Opcode = 0x1c // annex A19, memory placement extensions; its headers as in the kernel's rxe_opcode.c
	RCAtomicWrite                Opcode = 0x1d // annex A19
)

// Unreliable connection.
const (
	UCSendFirst                  Opcode = 0x20
	UCSendMiddle                 Opcode = 0x21
	UCSendLast                   Opcode = 0x22
	UCSendLastWithImmediate      Opcode = 0x23
	UCSendOnly                   Opcode = 0x24
	UCSendOnlyWithImmediate      Opcode = 0x25
	UCRDMAWriteFirst             Opcode = 0x26
	UCRDMAWriteMiddle            Opcode = 0x27
	UCRDMAWriteLast              Opcode = 0x28
	UCRDMAWriteLastWithImmediate Opcode = 0x29
	UCRDMAWriteOnly              Opcode = 0x2a
	UCRDMAWriteOnlyWithImmediate Opcode = 0x2b
)

// Unreliable datagram, and the congestion notification packet (A17.9), which belongs to none.
const (
	UDSendOnly              Opcode = 0x64
	UDSendOnlyWithImmediate Opcode = 0x65
	CNP                     Opcode = 0x81
)

// What rocebed's own RNICs say to each other when they repeat selectively, in opcodes that the specification
// leaves to manufacturers (9.2: 0xc0 to 0xff). Each packet of a WRITE says where it goes, as in IRN (Mittal et al.,
// SIGCOMM 2018), with the length of the message from it on. Who sends these keeps WRITEs that touch one another
// apart, so that they may be written in any order; of RC's own WRITEs that can't be said.
const (
	SRWriteFirst             Opcode = 0xc6
	SRWriteMiddle            Opcode = 0xc7
	SRWriteLast              Opcode = 0xc8
	SRWriteLastWithImmediate Opcode = 0xc9
	SRWriteOnly              Opcode = 0xca
	SRWriteOnlyWithImmediate Opcode = 0xcb
	// SRSelectiveAck acknowledges what is before its PSN, as a NAK of sequence does; besides, ImmDt is a PSN
	// beyond it that came, and bit i of AtomicAckETH says that the PSN 1 + i before that came as well.
	SRSelectiveAck Opcode = 0xd1
)

// Transport is an opcode's upper three bits.
type Transport uint8

// The transports. TransportCNP holds the CNP's opcode alone; the manufacturers' ones have a meaning
// by agreement only.
const (
	TransportRC           Transport = 0
	TransportUC           Transport = 1
	TransportRD           Transport = 2
	TransportUD           Transport = 3
	TransportCNP          Transport = 4
	TransportXRC          Transport = 5
	TransportManufacturer Transport = 6 // and 7
)

// Transport is the opcode's.
func (o Opcode) Transport() Transport {
	return min(Transport(o>>5), TransportManufacturer)
}

// Operation is what an opcode's packet is a part of, whatever the transport.
type Operation uint8

// The operations.
const (
	OpUnknown Operation = iota
	OpSend
	OpRDMAWrite
	OpRDMAReadRequest
	OpRDMAReadResponse
	OpAcknowledge
	OpAtomicAcknowledge
	OpCmpSwap
	OpFetchAdd
	OpFlush
	OpAtomicWrite
	OpCNP
)

// String writes the opcode as the specification's table does: "RC RDMA WRITE Only with Immediate".
func (o Opcode) String() string {
	if i := o.Info(); i.Known() {
		return i.Name
	}
	return fmt.Sprintf("opcode %#02x", uint8(o))
}
