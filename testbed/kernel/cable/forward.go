//go:build linux

package cable

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// hop is where a packet that arrives at an interface goes: the map value of the forwarder.
type hop struct {
	Out   uint32 // interface index of the far end
	Delay uint32 // 1: through the far end's netem; 0: straight into the port behind it
}

// forwarder is the program that all ends share, and its table by interface index.
type forwarder struct {
	table *ebpf.Map
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
	f.prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "rb_forward", Type: ebpf.SchedCLS, License: license,
		Instructions: asm.Instructions{
			asm.LoadMem(asm.R1, asm.R1, skbIfindex, asm.Word),
			asm.StoreMem(asm.RFP, -4, asm.R1, asm.Word),
			asm.LoadMapPtr(asm.R1, f.table.FD()),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, -4),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "nowhere"),
			asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
			asm.LoadMem(asm.R3, asm.R0, 4, asm.Word),
			asm.JEq.Imm(asm.R1, 0, "nowhere"),
			asm.Mov.Imm(asm.R2, 0),
			asm.JNE.Imm(asm.R3, 0, "delayed"),
			asm.FnRedirectPeer.Call(),
			asm.Return(),
			asm.FnRedirect.Call().WithSymbol("delayed"),
			asm.Return(),
			asm.Mov.Imm(asm.R0, verdictDrop).WithSymbol("nowhere"),
			asm.Return(),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("load forwarding program: %w", err)
	}
	return f, nil
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

// Close frees program and table.
func (f *forwarder) Close() error {
	var errs []error
	if f.prog != nil {
		errs = append(errs, f.prog.Close())
	}
	if f.table != nil {
		errs = append(errs, f.table.Close())
	}
	return errors.Join(errs...)
}
