package rnic

import (
	"fmt"

	"github.com/rocebed/rocebed/workloads/verbs"
)

type mr struct {
	object
	region
	was uint32 // the key, for those who ask after the region is gone
}

// RegMR implements verbs.PD. Local and remote key are one number.
func (p *pd) RegMR(mem verbs.Memory, off, length int, access verbs.Access, done func(verbs.MR, error)) {
	d := p.dev
	op := fmt.Sprintf("register %d bytes from %d on", length, off)
	r := &mr{object: object{dev: d}}
	err := p.ok()
	if err == nil {
		err = r.lay(p, mem, off, length, access)
	}
	if err != nil {
		answer[verbs.MR](d, op, nil, err, done)
		return
	}
	p.uses++
	answer[verbs.MR](d, op, r, nil, done)
}

func (r *mr) lay(p *pd, mem verbs.Memory, off, length int, access verbs.Access) error {
	m, ok := mem.(*memory)
	if v, is := mem.(*phantom); is {
		m, ok = v.memory, true
	}
	switch {
	case !ok || m.dev != p.dev:
		return fmt.Errorf("%w: the memory isn't the device's", ErrInvalid)
	case off < 0 || length <= 0 || off > m.Len() || length > m.Len()-off:
		return fmt.Errorf("%w: the memory has %d bytes", ErrInvalid, m.Len())
	case access&(verbs.RemoteWrite|verbs.RemoteAtomic) != 0 && access&verbs.LocalWrite == 0:
		return fmt.Errorf("%w: access %v needs LOCAL_WRITE", ErrInvalid, access)
	}
	if m.phantom != nil && access&verbs.RemoteAtomic != 0 {
		return fmt.Errorf("%w: phantom memory has no values for atomics", ErrInvalid)
	}
	r.region = region{pd: p, addr: m.addr + uint64(off), len: uint64(length), access: access, mem: m, off: uint64(off)}
	if access&verbs.ZeroBased != 0 {
		r.addr = 0
	}
	if !p.dev.keys.add(&r.region) {
		return fmt.Errorf("%w: there are %d regions and windows", ErrFull, maxKeys)
	}
	r.was = r.key
	return nil
}

func (r *mr) LKey() uint32 { return r.was }
func (r *mr) RKey() uint32 { return r.was }
func (r *mr) Addr() uint64 { return r.addr }
func (r *mr) Len() int     { return int(r.len) }

// Memory implements verbs.MR.
func (r *mr) Memory() verbs.Memory {
	if r.mem.phantom != nil {
		return &phantom{r.mem}
	}
	return r.mem
}

// Dereg implements verbs.MR. Windows bound to the region keep it.
func (r *mr) Dereg(done func(error)) {
	r.kill("deregister memory", func() { r.dev.keys.remove(&r.region); r.pd.uses-- }, done)
}
