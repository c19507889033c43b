//go:build linux

package cable

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// hop is where a packet that arrives at an interface goes: the value of the forwarder's table.
type hop struct {
	Out   uint32 // interface index of the far end
	Flags uint32
}

const (
	flagDelay   = 1 << 0 // through the far end's netem; else straight into the port behind it
	flagStages  = 1 << 1 // first through the stages in the chain's bank
	flagSettles = 1 << 2 // whose last copies and holds packets for the others
	flagBank    = 1 << 8 // the chain's second bank; else the first

	// A direction has two banks of the chain, so that its stages change all at once: the bank
	// that isn't used is filled, and then the table names it.
	bankSize  = 8
	chainSize = 2 * bankSize // of an interface
)

// forwarder is the program that all ends share, its table by interface index, and the chain: the
// stages by interface, bank and place. Programs call each other along the chain and need not be
// attached one by one, which would take the kernel an RCU grace period each.
type forwarder struct {
	table *ebpf.Map
	chain *ebpf.Map
	prog  *ebpf.Program
}

func newForwarder(maxIndex int) (_ *forwarder, err error) {
	f := &forwarder{}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	f.table, err = ebpf.NewMap(&ebpf.MapSpec{Name: "rb_cables", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: uint32(maxIndex) + 1})
	if err != nil {
		return nil, fmt.Errorf("make cable table: %w", err)
	}
	f.chain, err = ebpf.NewMap(&ebpf.MapSpec{Name: "rb_stages", Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: uint32(maxIndex+1) * chainSize})
	if err != nil {
		return nil, fmt.Errorf("make chain of stages: %w", err)
	}
	// R6 the packet, R7 its interface's hop. The place in the chain travels in the packet's
	// control block, and what is to become of the packet (bpf/rb.h).
	ins := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
	ins = append(ins, f.lookup("nowhere")...)
	ins = append(ins,
		asm.LoadMem(asm.R1, asm.R7, 4, asm.Word),
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.And.Imm(asm.R2, flagStages),
		asm.JEq.Imm(asm.R2, 0, "forward"),
		asm.LoadMem(asm.R3, asm.R6, skbIfindex, asm.Word),
		asm.Mul.Imm(asm.R3, chainSize),
		asm.And.Imm(asm.R1, flagBank),
		asm.JEq.Imm(asm.R1, 0, "first_bank"),
		asm.Add.Imm(asm.R3, bankSize),
		asm.StoreMem(asm.R6, skbCB, asm.R3, asm.Word).WithSymbol("first_bank"),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.R6, skbFlow, asm.R1, asm.Word),
		asm.StoreMem(asm.R6, skbTime, asm.R1, asm.Word),
		asm.StoreMem(asm.R6, skbTime+4, asm.R1, asm.Word),
		// FATE_SETTLED, bit 31
		asm.LoadMem(asm.R1, asm.R7, 4, asm.Word),
		asm.And.Imm(asm.R1, flagSettles),
		asm.LSh.Imm(asm.R1, 29),
		asm.StoreMem(asm.R6, skbFate, asm.R1, asm.Word),
	)
	ins = append(ins, f.call()...)
	ins = append(ins, f.forward("forward")...)
	ins = append(ins, nowhere("nowhere")...)
	f.prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "rb_forward", Type: ebpf.SchedCLS, License: license, Instructions: ins})
	if err != nil {
		return nil, fmt.Errorf("load forwarding program: %w", err)
	}
	return f, nil
}

// lookup leaves the hop of the packet in R6 in R7, or jumps.
func (f *forwarder) lookup(none string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R6, skbIfindex, asm.Word),
		asm.StoreMem(asm.RFP, -4, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, f.table.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, none),
		asm.Mov.Reg(asm.R7, asm.R0),
	}
}

// call goes on with the program at place R3 of the chain; where there is none it falls through.
func (f *forwarder) call() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.LoadMapPtr(asm.R2, f.chain.FD()),
		asm.FnTailCall.Call(),
	}
}

// forward sends the packet in R6 where the hop in R7 says, and ends the program.
func (f *forwarder) forward(label string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R7, 0, asm.Word).WithSymbol(label),
		asm.LoadMem(asm.R3, asm.R7, 4, asm.Word),
		asm.JEq.Imm(asm.R1, 0, "nowhere"),
		asm.Mov.Imm(asm.R2, 0),
		asm.And.Imm(asm.R3, flagDelay),
		asm.JNE.Imm(asm.R3, 0, "delayed"),
		asm.FnRedirectPeer.Call(),
		asm.Return(),
		asm.FnRedirect.Call().WithSymbol("delayed"),
		asm.Return(),
	}
}

// nowhere ends the program for a packet that has no hop, and the packet.
func nowhere(label string) asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R0, verdictNowhere).WithSymbol(label), asm.Return()}
}

func (f *forwarder) set(in int, h hop) error {
	if err := f.table.Put(uint32(in), h); err != nil {
		return fmt.Errorf("set cable table: %w", err)
	}
	return nil
}

func (f *forwarder) get(in int) (h hop, err error) {
	if err := f.table.Lookup(uint32(in), &h); err != nil {
		return h, fmt.Errorf("read cable table: %w", err)
	}
	return h, nil
}

func place(in int, flags uint32, at int) uint32 {
	p := uint32(in*chainSize + at)
	if flags&flagBank != 0 {
		p += bankSize
	}
	return p
}

// fill puts stages into the bank of an interface that the flags name, and nothing behind them.
func (f *forwarder) fill(in int, flags uint32, stages []*ebpf.Program) error {
	for at := range bankSize {
		key := place(in, flags, at)
		if at < len(stages) {
			if err := f.chain.Put(key, stages[at]); err != nil {
				return fmt.Errorf("put a stage into the chain: %w", err)
			}
		} else if err := f.chain.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("take a stage out of the chain: %w", err)
		}
	}
	return nil
}

// bank reads which programs are in an interface's bank.
func (f *forwarder) bank(in int, flags uint32) (ids []ebpf.ProgramID, err error) {
	for at := range bankSize {
		var id uint32
		err := f.chain.Lookup(place(in, flags, at), &id)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the chain: %w", err)
		}
		ids = append(ids, ebpf.ProgramID(id))
	}
	return ids, nil
}

// Close frees program, table and chain.
func (f *forwarder) Close() error {
	var errs []error
	if f.prog != nil {
		errs = append(errs, f.prog.Close())
	}
	if f.table != nil {
		errs = append(errs, f.table.Close())
	}
	if f.chain != nil {
		errs = append(errs, f.chain.Close())
	}
	return errors.Join(errs...)
}
