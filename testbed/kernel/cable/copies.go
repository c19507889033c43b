//go:build linux

package cable

import (
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
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, int32(out)),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnCloneRedirect.Call(),
		asm.JNE.Imm(asm.R0, 0, "next"), // no memory for a copy: none was made
		asm.Mov.Imm(asm.R0, verdictNext),
	}
}

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
	return append(ins,
		asm.Mov.Imm(asm.R1, int32(out)),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirectPeer.Call(),
	)
}
