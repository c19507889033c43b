//go:build linux

package cable

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// Model is what a stage does to packets.
type Model interface {
	// order is the stage's place among others: packets are lost before they are changed, and
	// changed before they are copied.
	order() int
	// check says what of the parameters can't be.
	check() error
}

// judge is a Model whose stage is one small program.
type judge interface {
	Model
	// decide appends the instructions that follow the count of the packet. They may use R0 to
	// R5 and R9; they jump to "hit" or fall through to leave the packet alone.
	decide(seed uint64) asm.Instructions
	// act appends what is done to a packet that is hit: leaves R0 as the verdict (verdictNext: it
	// goes on), or jumps to "next" when the packet could not be hit after all. out is the interface
	// at the far end.
	act(seed uint64, out int) asm.Instructions
}

// The verdicts of a program (TC_ACT_SHOT and so on, include/uapi/linux/pkt_cls.h).
const (
	verdictNext    = -1 // ours: on to the next stage
	verdictDrop    = 2
	verdictNowhere = 4 // stolen: freed, and counted nowhere as dropped
)

// Offsets in struct __sk_buff.
const (
	skbLen      = 0
	skbProtocol = 16
	skbIfindex  = 40
	skbCB       = 48
	skbFate     = skbCB + 4 // what is to become of the packet: bpf/rb.h
	skbFlow     = skbCB + 8
	skbTime     = skbCB + 12
)

// Counts are a stage's counters.
type Counts struct {
	Seen uint64 // packets that reached the stage
	Hits uint64 // packets that it did something to
}

// value is the stage's map value.
type value struct {
	seen, hits uint64
	state      uint64 // Gilbert-Elliott: 1 in the bad state
}

const (
	offSeen  = int16(unsafe.Offsetof(value{}.seen))
	offHits  = int16(unsafe.Offsetof(value{}.hits))
	offState = int16(unsafe.Offsetof(value{}.state))
)

// Stage is a loaded program and its counters. It does nothing until a Wire has it.
type Stage struct {
	model Model
	seed  uint64
	prog  *ebpf.Program
	data  *ebpf.Map
	picks *picks    // of Events
	sizes *ebpf.Map // thresholds by length, of bit errors
	end   *ending   // of models that leave something to the end of the chain
}

// newStage loads the program of a model. out is the interface index of the far end.
func newStage(f *forwarder, m Model, seed uint64, out int) (_ *Stage, err error) {
	if e, ok := m.(Events); ok {
		return newEvents(f, e, out)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	s := &Stage{model: m, seed: seed}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	s.data, err = ebpf.NewMap(&ebpf.MapSpec{Name: "rb_stage", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(unsafe.Sizeof(value{})), MaxEntries: 1})
	if err != nil {
		return nil, fmt.Errorf("make counters: %w", err)
	}
	ins := stageProgram(f, m.(judge), seed, s.data.FD(), out)
	if b, ok := m.(BitErrors); ok {
		if s.sizes, err = b.sizes(); err != nil {
			return nil, err
		}
		if err := ins.AssociateMap(bySize, s.sizes); err != nil {
			return nil, fmt.Errorf("use thresholds: %w", err)
		}
	}
	if settling(m) != settlesNothing {
		if s.end, err = newEnding(f, out); err != nil {
			return nil, err
		}
	}
	s.prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "rb_stage", Type: ebpf.SchedCLS, License: license, Instructions: ins})
	if err != nil {
		return nil, fmt.Errorf("load program: %w", err)
	}
	return s, nil
}

// Counts reads the counters from the kernel.
func (s *Stage) Counts() (Counts, error) {
	v, err := s.read()
	return Counts{Seen: v.seen, Hits: v.hits}, err
}

func (s *Stage) read() (v value, err error) {
	var raw [3]uint64
	if err := s.data.Lookup(uint32(0), &raw); err != nil {
		return v, fmt.Errorf("read counters: %w", err)
	}
	return value{raw[0], raw[1], raw[2]}, nil
}

// Is says whether the stage is of that model and seed.
func (s *Stage) Is(m Model, seed uint64) bool {
	if e, ok := s.model.(Events); ok {
		return s.seed == seed && e.same(m)
	}
	if _, ok := m.(Events); ok {
		return false
	}
	return s.model == m && s.seed == seed
}

// Reset makes the stage as it was when it was loaded: no packets seen, the first ordinal next, no connection known.
func (s *Stage) Reset() error {
	if err := s.data.Put(uint32(0), value{}); err != nil {
		return fmt.Errorf("reset counters: %w", err)
	}
	if s.end != nil {
		s.end.shelf.reset()
	}
	if s.picks == nil {
		return nil
	}
	return s.picks.reset()
}

// Settle sends on what the stage still holds. Its wire has let go of it.
func (s *Stage) Settle() error {
	if s.end == nil {
		return nil
	}
	if err := passed(); err != nil {
		return err
	}
	s.end.shelf.drain()
	return nil
}

// passed waits until no processor is in a program that has left the chain: programs run as RCU readers, and this membarrier is
// synchronize_rcu (kernel/sched/membarrier.c).
func passed() error {
	const global = 1 // MEMBARRIER_CMD_GLOBAL
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, global, 0, 0); errno != 0 {
		return fmt.Errorf("wait for an RCU grace period: membarrier: %w", errno)
	}
	return nil
}

// Close frees the program and its counters. No wire may have the stage any more.
func (s *Stage) Close() error {
	var err error
	if s.prog != nil {
		err = s.prog.Close()
	}
	if s.data != nil {
		err = errors.Join(err, s.data.Close())
	}
	if s.picks != nil {
		err = errors.Join(err, s.picks.close())
	}
	if s.end != nil {
		err = errors.Join(err, s.end.close())
	}
	if s.sizes != nil {
		err = errors.Join(err, s.sizes.Close())
	}
	return err
}

// license is the one that every helper we call accepts; it is what the kernel asks for, and says
// nothing of this file's.
const license = "Dual MIT/GPL"

// stageProgram counts a packet, lets the model decide, does what it says, and goes on along the
// chain, at whose end the packet is forwarded:
//
//	R6 the packet, R7 the counters, R8 the packet's ordinal from 0
func stageProgram(f *forwarder, m judge, seed uint64, dataFD, out int) asm.Instructions {
	ins := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMapValue(asm.R7, dataFD, 0),
		asm.Mov.Imm(asm.R8, 1),
		fetchAdd(asm.R8, offSeen),
	}
	ins = append(ins, m.decide(seed)...)
	ins = append(ins,
		asm.LoadMem(asm.R3, asm.R6, skbCB, asm.Word).WithSymbol("next"),
		asm.Add.Imm(asm.R3, 1),
		asm.StoreMem(asm.R6, skbCB, asm.R3, asm.Word),
	)
	ins = append(ins, f.call()...)
	ins = append(ins, f.lookup("nowhere")...)
	ins = append(ins, f.forward("forward")...)
	ins = append(ins, nowhere("nowhere")...)
	hit := m.act(seed, out)
	hit[0] = hit[0].WithSymbol("hit")
	ins = append(ins, hit...)
	return append(ins,
		asm.Mov.Imm(asm.R1, 1),
		asm.AddAtomic.Mem(asm.R7, asm.R1, asm.DWord, offHits),
		asm.JEq.Imm(asm.R0, verdictNext, "next"),
		asm.Return(),
	)
}

// fetchAdd adds a register to a counter and leaves the counter's old value in the register.
// cilium/ebpf 0.22.0 writes the constant as it was before it puts the operation there, so that
// without ours it would encode a plain addition.
func fetchAdd(r asm.Register, offset int16) asm.Instruction {
	ins := asm.FetchAdd.Mem(asm.R7, r, asm.DWord, offset)
	ins.Constant = int64(asm.FetchAdd >> 8)
	return ins
}

// Constants of splitmix64 (Steele, Lea and Flood 2014, figure 15).
const (
	gamma = 0x9e3779b97f4a7c15
	mixA  = 0xbf58476d1ce4e5b9
	mixB  = 0x94d049bb133111eb
)

// draw is the random number of a packet: a function of seed, purpose and ordinal.
func draw(seed, purpose, ordinal uint64) uint64 {
	z := seed + purpose*mixA + (ordinal+1)*gamma
	z = (z ^ z>>30) * mixA
	z = (z ^ z>>27) * mixB
	return z ^ z>>31
}

// drawInto appends draw into R1 for the ordinal in R8. It uses R2.
func drawInto(seed, purpose uint64) asm.Instructions {
	xorShift := func(n int32) asm.Instructions {
		return asm.Instructions{asm.Mov.Reg(asm.R2, asm.R1), asm.RSh.Imm(asm.R2, n), asm.Xor.Reg(asm.R1, asm.R2)}
	}
	mul := func(k uint64) asm.Instructions {
		return asm.Instructions{asm.LoadImm(asm.R2, int64(k), asm.DWord), asm.Mul.Reg(asm.R1, asm.R2)}
	}
	ins := asm.Instructions{asm.Mov.Reg(asm.R1, asm.R8), asm.Add.Imm(asm.R1, 1)}
	ins = append(ins, mul(gamma)...)
	ins = append(ins, asm.LoadImm(asm.R2, int64(seed+purpose*mixA), asm.DWord), asm.Add.Reg(asm.R1, asm.R2))
	ins = append(ins, xorShift(30)...)
	ins = append(ins, mul(mixA)...)
	ins = append(ins, xorShift(27)...)
	ins = append(ins, mul(mixB)...)
	return append(ins, xorShift(31)...)
}

// threshold is the number below which a draw means yes: p × 2^64.
func threshold(p float64) uint64 {
	if p >= 1 {
		return math.MaxUint64
	}
	return uint64(math.Ldexp(p, 64))
}

// jumpIfDrawn jumps to label with probability p. It uses R1 and R2.
func jumpIfDrawn(seed, purpose uint64, p float64, label string) asm.Instructions {
	switch {
	case p <= 0:
		return nil
	case p >= 1:
		// Always true, but the kernel refuses programs with code behind a plain jump that
		// nothing reaches.
		return asm.Instructions{asm.JGE.Imm(asm.R8, 0, label)}
	}
	return append(drawInto(seed, purpose),
		asm.LoadImm(asm.R2, int64(threshold(p)), asm.DWord),
		asm.JLT.Reg(asm.R1, asm.R2, label),
	)
}

func checkProbability(name string, p float64) error {
	if !(p > 0 && p <= 1) {
		return fmt.Errorf("%s %v is not above 0 and at most 1", name, p)
	}
	return nil
}
