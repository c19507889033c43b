//go:build linux

package cable

import (
	"fmt"

	"github.com/cilium/ebpf/asm"
)

// RandomLoss drops each packet with a probability, independently.
type RandomLoss struct{ P float64 }

func (RandomLoss) order() int     { return 1 }
func (l RandomLoss) check() error { return checkProbability("loss", l.P) }
func (l RandomLoss) decide(seed uint64) asm.Instructions {
	return jumpIfDrawn(seed, drawHit, l.P, "hit")
}
func (RandomLoss) act(uint64, int) asm.Instructions { return drop() }

// NthLoss drops every nth packet exactly: the nth, the 2nth and so on since it was put in.
type NthLoss struct{ N uint32 }

func (NthLoss) order() int { return 1 }
func (l NthLoss) check() error {
	if l.N == 0 || l.N > 1<<31-1 {
		return fmt.Errorf("every %d: not between 1 and 2^31−1", l.N)
	}
	return nil
}
func (l NthLoss) decide(uint64) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R8),
		asm.Add.Imm(asm.R1, 1),
		asm.Mod.Imm(asm.R1, int32(l.N)),
		asm.JEq.Imm(asm.R1, 0, "hit"),
	}
}
func (NthLoss) act(uint64, int) asm.Instructions { return drop() }

// BurstLoss is the Gilbert-Elliott model: a packet is lost with the probability of the state
// that the cable is in, and then the state may change. It starts in the good state.
type BurstLoss struct {
	P, R              float64 // to the bad state, and back
	LossBad, LossGood float64
}

func (BurstLoss) order() int { return 1 }
func (l BurstLoss) check() error {
	if err := checkProbability("p", l.P); err != nil {
		return err
	}
	if err := checkProbability("r", l.R); err != nil {
		return err
	}
	if l.LossBad < 0 || l.LossBad > 1 || l.LossGood < 0 || l.LossGood > 1 || l.LossBad+l.LossGood == 0 {
		return fmt.Errorf("losses %v and %v are not between 0 and 1, or both 0", l.LossBad, l.LossGood)
	}
	return nil
}

// The purposes of random numbers, so that those of one packet are independent.
const (
	drawHit = iota
	drawTransition
	drawBit
)

// decide takes the next state first and then loses by the old one, since losing ends the
// program. Two packets that arrive on two CPUs at once may both see the old state; the chain
// then misses one step, which no statistic notices.
func (l BurstLoss) decide(seed uint64) asm.Instructions {
	setState := func(v int32, next string, label string) asm.Instructions {
		return asm.Instructions{
			asm.Mov.Imm(asm.R1, v).WithSymbol(label),
			asm.StoreMem(asm.R7, offState, asm.R1, asm.DWord),
			asm.Ja.Label(next),
		}
	}
	ins := asm.Instructions{
		asm.LoadMem(asm.R9, asm.R7, offState, asm.DWord),
		asm.JNE.Imm(asm.R9, 0, "bad"),
	}
	ins = append(ins, jumpIfDrawn(seed, drawTransition, l.P, "goes_bad")...)
	ins = append(ins, asm.Ja.Label("lose_good"))
	ins = append(ins, setState(1, "lose_good", "goes_bad")...)

	bad := append(jumpIfDrawn(seed, drawTransition, l.R, "recovers"), asm.Ja.Label("lose_bad"))
	bad[0] = bad[0].WithSymbol("bad")
	ins = append(ins, bad...)
	ins = append(ins, setState(0, "lose_bad", "recovers")...)

	lose := func(p float64, label string) asm.Instructions {
		i := append(jumpIfDrawn(seed, drawHit, p, "hit"), asm.Ja.Label("next"))
		i[0] = i[0].WithSymbol(label)
		return i
	}
	ins = append(ins, lose(l.LossGood, "lose_good")...)
	return append(ins, lose(l.LossBad, "lose_bad")...)
}
func (BurstLoss) act(uint64, int) asm.Instructions { return drop() }

func drop() asm.Instructions { return asm.Instructions{asm.Mov.Imm(asm.R0, verdictDrop)} }
