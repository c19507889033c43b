//go:build linux

package cable

import (
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/rocebed/rocebed/faults"
)

// Sever drops all that comes.
type Sever struct{}

func (Sever) order() int                               { return 1 }
func (Sever) check() error                             { return nil }
func (Sever) decide(uint64) asm.Instructions           { return jumpIfDrawn(0, drawHit, 1, "hit") }
func (Sever) act(uint64, int) asm.Instructions         { return drop() }
func (BlackHole) order() int                           { return 1 }
func (BlackHole) check() error                         { return nil }
func (BlackHole) act(uint64, int) asm.Instructions     { return drop() }
func (TooLong) order() int                             { return 1 }
func (TooLong) act(uint64, int) asm.Instructions       { return drop() }
func (BitErrors) order() int                           { return 2 }
func (BitErrors) act(s uint64, o int) asm.Instructions { return Corrupt{}.act(s, o) }

// BlackHole drops what is IP, and lets the rest pass: ARP and pause frames.
type BlackHole struct{}

func (BlackHole) decide(uint64) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R6, skbProtocol, asm.Word),
		asm.JEq.Imm(asm.R1, protocolIPv4, "hit"),
		asm.JEq.Imm(asm.R1, protocolIPv6, "hit"),
	}
}

// TooLong drops IP packets of more than MTU bytes.
type TooLong struct{ MTU int }

func (l TooLong) check() error {
	if l.MTU <= 0 || l.MTU > 1<<16 {
		return fmt.Errorf("an MTU of %d bytes is not above 0 and at most 65536", l.MTU)
	}
	return nil
}

func (l TooLong) decide(uint64) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R6, skbProtocol, asm.Word),
		asm.JEq.Imm(asm.R1, protocolIPv4, "ip"),
		asm.JNE.Imm(asm.R1, protocolIPv6, "next"),
		asm.LoadMem(asm.R1, asm.R6, skbLen, asm.Word).WithSymbol("ip"),
		asm.JGT.Imm(asm.R1, int32(l.MTU+ethernetHeader), "hit"),
	}
}

// BitErrors flips each bit of a packet with a probability: one that has a flipped bit is damaged as by Corrupt.
type BitErrors struct{ Rate faults.BitErrorRate }

func (b BitErrors) check() error {
	if !(b.Rate > 0 && b.Rate < 0.5) {
		return fmt.Errorf("a bit error rate of %g is not above 0 and below 0.5", float64(b.Rate))
	}
	return nil
}

// bySize is what the program calls the thresholds by a packet's length.
const bySize = "rb_sizes"

// longest is the length up to which there are thresholds; what is longer has the last one.
const longest = 1 << 14

// sizes are the thresholds.
func (b BitErrors) sizes() (*ebpf.Map, error) {
	table := make([]byte, 0, 8*longest)
	for n := range longest {
		table = binary.LittleEndian.AppendUint64(table, threshold(b.Rate.Packet(n)))
	}
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: bySize, Type: ebpf.Array, KeySize: 4, ValueSize: 8 * longest, MaxEntries: 1})
	if err != nil {
		return nil, fmt.Errorf("make thresholds: %w", err)
	}
	if err := m.Put(uint32(0), table); err != nil {
		return nil, fmt.Errorf("set thresholds: %w", err)
	}
	return m, nil
}

func (b BitErrors) decide(seed uint64) asm.Instructions {
	ins := asm.Instructions{
		asm.LoadMem(asm.R9, asm.R6, skbLen, asm.Word),
		asm.JLT.Imm(asm.R9, longest, "fits"),
		asm.Mov.Imm(asm.R9, longest-1),
		asm.LSh.Imm(asm.R9, 3).WithSymbol("fits"),
		asm.LoadMapValue(asm.R1, 0, 0).WithReference(bySize),
		asm.Add.Reg(asm.R1, asm.R9),
		asm.LoadMem(asm.R9, asm.R1, 0, asm.DWord),
		asm.Mov.Imm(asm.R1, -1),
		asm.JEq.Reg(asm.R9, asm.R1, "hit"), // always
	}
	ins = append(ins, drawInto(seed, drawHit)...)
	return append(ins, asm.JLT.Reg(asm.R1, asm.R9, "hit"))
}
