//go:build linux

package cable

import (
	"github.com/cilium/ebpf/asm"
)

// Corrupt flips one bit of a share of the packets, anywhere after the UDP header: in the
// transport headers, the payload or the ICRC, which is what RoCE's own checks must catch. IP's
// header has a checksum of its own and would only make it a loss. Packets that are not IP, or
// end before that, are left alone.
type Corrupt struct{ P float64 }

func (Corrupt) order() int     { return 2 }
func (c Corrupt) check() error { return checkProbability("corruption", c.P) }
func (c Corrupt) decide(seed uint64) asm.Instructions {
	return jumpIfDrawn(seed, drawHit, c.P, "hit")
}

const (
	ethernetHeader = 14
	udpHeader      = 8
	ipv6Header     = 40
	protocolIPv4   = 0x0008 // 0x0800 in network order, as __sk_buff has it
	protocolIPv6   = 0xdd86
)

// act works on one byte at the top of the stack. R9 is where the part that may be hit begins,
// then the byte that is hit.
func (Corrupt) act(seed uint64, _ int) asm.Instructions {
	byteOnStack := func(at asm.Register) asm.Instructions {
		return asm.Instructions{
			asm.Mov.Reg(asm.R1, asm.R6),
			asm.Mov.Reg(asm.R2, at),
			asm.Mov.Reg(asm.R3, asm.RFP),
			asm.Add.Imm(asm.R3, -8),
			asm.Mov.Imm(asm.R4, 1),
		}
	}
	ins := asm.Instructions{
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, -8, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R6, skbProtocol, asm.Word),
		asm.Mov.Imm(asm.R9, ethernetHeader+ipv6Header+udpHeader),
		asm.JEq.Imm(asm.R1, protocolIPv6, "span"),
		asm.JNE.Imm(asm.R1, protocolIPv4, "next"),
		// IPv4: the header's length is in its first byte.
		asm.Mov.Imm(asm.R9, ethernetHeader),
	}
	ins = append(ins, byteOnStack(asm.R9)...)
	ins = append(ins,
		asm.FnSkbLoadBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, "next"),
		asm.LoadMem(asm.R9, asm.RFP, -8, asm.Byte),
		asm.And.Imm(asm.R9, 15),
		asm.LSh.Imm(asm.R9, 2),
		asm.Add.Imm(asm.R9, ethernetHeader+udpHeader),
		// span: R3 bits from byte R9 on; one of them is drawn.
		asm.LoadMem(asm.R3, asm.R6, skbLen, asm.Word).WithSymbol("span"),
		asm.JLE.Reg(asm.R3, asm.R9, "next"),
		asm.Sub.Reg(asm.R3, asm.R9),
		asm.LSh.Imm(asm.R3, 3),
	)
	ins = append(ins, drawInto(seed, drawBit)...)
	ins = append(ins,
		asm.Mod.Reg(asm.R1, asm.R3),
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.RSh.Imm(asm.R2, 3),
		asm.Add.Reg(asm.R9, asm.R2),
		asm.And.Imm(asm.R1, 7),
		asm.Mov.Imm(asm.R2, 1),
		asm.LSh.Reg(asm.R2, asm.R1),
		asm.StoreMem(asm.RFP, -16, asm.R2, asm.DWord),
	)
	ins = append(ins, byteOnStack(asm.R9)...)
	ins = append(ins,
		asm.FnSkbLoadBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, "next"),
		asm.LoadMem(asm.R1, asm.RFP, -8, asm.Byte),
		asm.LoadMem(asm.R2, asm.RFP, -16, asm.DWord),
		asm.Xor.Reg(asm.R1, asm.R2),
		asm.StoreMem(asm.RFP, -8, asm.R1, asm.Byte),
	)
	ins = append(ins, byteOnStack(asm.R9)...)
	return append(ins,
		asm.Mov.Imm(asm.R5, 0),
		asm.FnSkbStoreBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, "next"),
		asm.Mov.Imm(asm.R0, verdictNext),
	)
}
