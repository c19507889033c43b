//go:build linux

package cable

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf/asm"
)

// Duplicate sends a copy of a share of the packets along with them, through the same delay.
type Duplicate struct{ P float64 }

func (Duplicate) order() int     { return 3 }
func (d Duplicate) check() error { return checkProbability("duplication", d.P) }
func (d Duplicate) decide(seed uint64) asm.Instructions {
	return jumpIfDrawn(seed, drawHit, d.P, "hit")
}
func (Duplicate) act(_ uint64, out int) asm.Instructions {
	return append(jumpUnlessSettled("copy"),
		asm.Add.Imm(asm.R1, fateCopy),
		asm.StoreMem(asm.R6, skbFate, asm.R1, asm.Word),
		asm.Mov.Imm(asm.R0, verdictNext),
		asm.Ja.Label("done"),
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("copy"),
		asm.Mov.Imm(asm.R2, int32(out)),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnCloneRedirect.Call(),
		asm.JNE.Imm(asm.R0, 0, "next"), // no memory for a copy: none was made
		asm.Mov.Imm(asm.R0, verdictNext),
		asm.Mov.Reg(asm.R0, asm.R0).WithSymbol("done"),
	)
}

// jumpUnlessSettled jumps unless the end of the chain does what the packet's fate says, which R1 is then.
func jumpUnlessSettled(label string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R6, skbFate, asm.Word),
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.RSh.Imm(asm.R2, 31),
		asm.JEq.Imm(asm.R2, 0, label),
	}
}

const (
	fateCopy  = 1 << 16 // FATE_COPY
	fateEarly = 1 << 24 // FATE_EARLY
)

// Overtake lets some packets past those that wait on the cable: they arrive at once, and the
// others, which the delay of the cable holds, after them. A packet is let past with probability
// P, and no sooner than Gap packets after the last (0 or 1: any). The one that is let past skips
// the propagation delay too, so it arrives early by that.
type Overtake struct {
	P   float64
	Gap uint32
}

func (Overtake) order() int { return 4 }
func (o Overtake) check() error {
	if o.Gap > 1<<31-1 {
		return fmt.Errorf("gap %d is over 2^31−1", o.Gap)
	}
	return checkProbability("reordering", o.P)
}

// decide keeps in the state word how many packets were held since the last that was let past.
func (o Overtake) decide(seed uint64) asm.Instructions {
	if o.Gap <= 1 {
		return jumpIfDrawn(seed, drawHit, o.P, "hit")
	}
	ins := asm.Instructions{
		asm.Mov.Imm(asm.R9, 1),
		fetchAdd(asm.R9, offState),
		asm.JLT.Imm(asm.R9, int32(o.Gap)-1, "next"),
	}
	return append(ins, jumpIfDrawn(seed, drawHit, o.P, "hit")...)
}

func (o Overtake) act(_ uint64, out int) asm.Instructions {
	var ins asm.Instructions
	if o.Gap > 1 {
		ins = asm.Instructions{asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.R7, offState, asm.R1, asm.DWord)}
	}
	ins = append(ins, jumpUnlessSettled("past")...)
	return append(ins,
		asm.Or.Imm(asm.R1, fateEarly),
		asm.StoreMem(asm.R6, skbFate, asm.R1, asm.Word),
		asm.Mov.Imm(asm.R0, verdictNext),
		asm.Ja.Label("done"),
		asm.Mov.Imm(asm.R1, int32(out)).WithSymbol("past"),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirectPeer.Call(),
		asm.Mov.Reg(asm.R0, asm.R0).WithSymbol("done"),
	)
}

// Overtaken lets Window packets past some: each with probability P, and no sooner than Gap packets after the last (0 or 1: any). All packets that
// go on count, whosever they are.
type Overtaken struct {
	P      float64
	Gap    uint32
	Window uint16
}

func (Overtaken) order() int      { return 4 }
func (Overtaken) settles() uint32 { return settlesHeld }
func (o Overtaken) check() error {
	switch {
	case o.Window == 0:
		return errors.New("no packet would overtake: the window must be at least 1")
	case o.P >= 1 && o.Gap <= 1:
		return errors.New("with every packet held back none is left that could overtake: give a probability below 1, or a gap")
	}
	return Overtake{o.P, o.Gap}.check()
}

func (o Overtaken) decide(seed uint64) asm.Instructions { return Overtake{o.P, o.Gap}.decide(seed) }

// act leaves the packet to the end of the chain. Its flow there is 0, as everybody's.
func (o Overtaken) act(uint64, int) asm.Instructions {
	var ins asm.Instructions
	if o.Gap > 1 {
		ins = asm.Instructions{asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.R7, offState, asm.R1, asm.DWord)}
	}
	return append(ins,
		asm.LoadMem(asm.R1, asm.R6, skbFate, asm.Word),
		asm.Or.Imm(asm.R1, int32(o.Window)),
		asm.StoreMem(asm.R6, skbFate, asm.R1, asm.Word),
		asm.Mov.Imm(asm.R0, verdictNext),
	)
}
