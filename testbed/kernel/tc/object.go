//go:build linux

package tc

import (
	"encoding/binary"
	"fmt"

	"github.com/rocebed/rocebed/testbed/kernel/nl"
	"golang.org/x/sys/unix"
)

// Root is the parent of a device's root qdisc (TC_H_ROOT).
const Root = 0xffffffff

// Object is a qdisc or a class.
type Object struct {
	ID     uint32 // handle of a qdisc, id of a class
	Parent uint32
	Class  bool
	Spec   Spec
}

// Spec is the kind of a qdisc or class with its parameters.
type Spec interface {
	// Kind is the kernel's name for it.
	Kind() string
	// options appends the content of TCA_OPTIONS.
	options(b *nl.Batch)
	// sameAs says what of got, which the kernel reported, differs from the spec.
	sameAs(got Spec) error
}

// The attributes of include/uapi/linux/rtnetlink.h.
const (
	tcaKind    = 1
	tcaOptions = 2
	tcaStats2  = 7
)

func (o Object) String() string {
	what := "qdisc"
	if o.Class {
		what = "class"
	}
	return fmt.Sprintf("%s %s %s", what, o.Spec.Kind(), idString(o.ID))
}

func idString(id uint32) string {
	if id == Root {
		return "root"
	}
	if id&0xffff == 0 {
		return fmt.Sprintf("%x:", id>>16)
	}
	return fmt.Sprintf("%x:%x", id>>16, id&0xffff)
}

// Op is one change to a port's tree.
type Op struct {
	Verb   Verb
	Object Object
}

// Verb is what an Op does.
type Verb uint8

// The verbs.
const (
	Add Verb = iota
	Change
	Delete
)

var verbNames = [...]string{Add: "add", Change: "change", Delete: "delete"}

func (v Verb) String() string { return verbNames[v] }

// AppendOp appends the request for op on the device with that index; where goes before the label.
func AppendOp(b *nl.Batch, ifindex int, op Op, where string) {
	kind, flags := uint16(unix.RTM_NEWQDISC), uint16(0)
	switch {
	case op.Verb == Delete && op.Object.Class:
		kind = unix.RTM_DELTCLASS
	case op.Verb == Delete:
		kind = unix.RTM_DELQDISC
	case op.Object.Class:
		kind = unix.RTM_NEWTCLASS
	}
	if op.Verb == Add {
		flags = unix.NLM_F_CREATE | unix.NLM_F_EXCL
	}
	b.Begin(kind, flags, fmt.Sprintf("%s: %v %v", where, op.Verb, op.Object))
	id := op.Object.ID
	if op.Verb == Delete && !op.Object.Class && op.Object.Parent == Root {
		id = 0 // whatever is there
	}
	appendHeader(b, ifindex, id, op.Object.Parent)
	if op.Verb != Delete {
		b.AttrString(tcaKind, op.Object.Spec.Kind())
		b.Nest(tcaOptions, func() { op.Object.Spec.options(b) })
	}
	b.End()
}

// appendHeader appends a struct tcmsg.
func appendHeader(b *nl.Batch, ifindex int, id, parent uint32) {
	b.U8(unix.AF_UNSPEC)
	b.Zero(3)
	b.U32(uint32(ifindex))
	b.U32(id)
	b.U32(parent)
	b.U32(0)
}

const tcmsgLen = 20

// header reads a struct tcmsg.
func header(p []byte) (ifindex int, id, parent uint32) {
	e := binary.NativeEndian
	return int(int32(e.Uint32(p[4:]))), e.Uint32(p[8:]), e.Uint32(p[12:])
}
