//go:build linux

package nldev

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/testbed/kernel/nl"
)

// Message types and attributes of include/uapi/rdma/rdma_netlink.h.
const (
	clientNLDEV = 5 << 10

	cmdGet     = clientNLDEV | 1
	cmdSet     = clientNLDEV | 2
	cmdNewLink = clientNLDEV | 3
	cmdDelLink = clientNLDEV | 4
	cmdPortGet = clientNLDEV | 5
	cmdSysGet  = clientNLDEV | 6
	cmdSysSet  = clientNLDEV | 7
	cmdQPGet   = clientNLDEV | 10
	cmdStatGet = clientNLDEV | 17

	attrDevIndex     = 1
	attrDevName      = 2
	attrPortIndex    = 3
	attrPortState    = 12
	attrResQP        = 19
	attrResQPEntry   = 20
	attrResLQPN      = 21
	attrResRQPN      = 22
	attrResRQPSN     = 23
	attrResSQPSN     = 24
	attrResType      = 26
	attrResState     = 27
	attrResPID       = 28
	attrNetdevName   = 51
	attrLinkType     = 65
	attrNetnsMode    = 66
	attrNetnsFD      = 68
	attrHWCounters   = 80
	attrHWCounter    = 81
	attrCounterName  = 82
	attrCounterValue = 83
)

// port is the only port of an rxe device.
const port = 1

// Conn is a connection to the RDMA subsystem as one namespace sees it.
type Conn struct{ nl *nl.Conn }

// Open opens a Conn in the calling thread's network namespace.
func Open() (*Conn, error) {
	c, err := nl.Open(unix.NETLINK_RDMA)
	if err != nil {
		return nil, fmt.Errorf("%w (is ib_core loaded?)", err)
	}
	return &Conn{c}, nil
}

// Adopt makes a connection of a socket that another process opened.
func Adopt(fd int) *Conn { return &Conn{nl.Adopt(fd)} }

// File is the socket for another process, which adopts it. Only one of the two may speak on it. The caller closes it.
func (c *Conn) File() (*os.File, error) { return c.nl.File() }

// Close closes the connection.
func (c *Conn) Close() error { return c.nl.Close() }

// Device is an RDMA device.
type Device struct {
	Index uint32
	Name  string
}

// Devices lists the devices that the namespace sees.
func (c *Conn) Devices() (found []Device, err error) {
	err = c.nl.Dump(cmdGet, nil, "list RDMA devices", func() { found = nil }, func(_ uint16, p []byte) {
		a := nl.Attrs(p)
		found = append(found, Device{nl.U32At(a[attrDevIndex]), nl.StringAt(a[attrDevName])})
	})
	return found, err
}

// Find finds a device by name.
func (c *Conn) Find(name string) (Device, bool, error) {
	all, err := c.Devices()
	for _, d := range all {
		if d.Name == name {
			return d, true, err
		}
	}
	return Device{}, false, err
}

// AddRxe makes an rxe device on an interface of the namespace. In exclusive mode it appears in
// the initial namespace, and has to be moved.
func (c *Conn) AddRxe(name, netdev string) error {
	var b nl.Batch
	b.Begin(cmdNewLink, 0, fmt.Sprintf("add rxe device %s on %s", name, netdev))
	b.AttrString(attrDevName, name)
	b.AttrString(attrLinkType, "rxe")
	b.AttrString(attrNetdevName, netdev)
	b.End()
	return c.nl.Send(&b)
}

// Delete removes a device. The kernel may go on with that after it has answered.
func (c *Conn) Delete(d Device) error {
	var b nl.Batch
	b.Begin(cmdDelLink, 0, "delete RDMA device "+d.Name)
	b.AttrU32(attrDevIndex, d.Index)
	b.End()
	return c.nl.Send(&b)
}

// Move gives a device to another namespace. It needs exclusive mode.
func (c *Conn) Move(d Device, netns int) error {
	var b nl.Batch
	b.Begin(cmdSet, 0, "move RDMA device "+d.Name)
	b.AttrU32(attrDevIndex, d.Index)
	b.AttrU32(attrNetnsFD, uint32(netns))
	b.End()
	return c.nl.Send(&b)
}

// Shared says whether devices belong to all namespaces (shared) or to one each (exclusive).
func (c *Conn) Shared() (shared bool, err error) {
	err = c.nl.Get(cmdSysGet, nil, "read the RDMA namespace mode", func(_ uint16, p []byte) {
		v := nl.Attrs(p)[attrNetnsMode]
		shared = len(v) > 0 && v[0] == 1
	})
	return shared, err
}

// SetShared sets the mode. The kernel refuses while other namespaces exist.
func (c *Conn) SetShared(shared bool) error {
	mode, v := "exclusive", uint8(0)
	if shared {
		mode, v = "shared", 1
	}
	var b nl.Batch
	b.Begin(cmdSysSet, 0, "set the RDMA namespace mode to "+mode)
	b.AttrU8(attrNetnsMode, v)
	b.End()
	return c.nl.Send(&b)
}

// PortState is a port's state as ibv_port_state counts: 1 down, 4 active.
func (c *Conn) PortState(d Device) (state uint8, err error) {
	var b nl.Batch
	b.AttrU32(attrDevIndex, d.Index)
	b.AttrU32(attrPortIndex, port)
	err = c.nl.Get(cmdPortGet, b.Bytes(), "read the port of "+d.Name, func(_ uint16, p []byte) {
		if v := nl.Attrs(p)[attrPortState]; len(v) > 0 {
			state = v[0]
		}
	})
	return state, err
}

// Counter is one of a device's counters.
type Counter struct {
	Name  string
	Value uint64
}

// Counters are a device's hardware counters, in the driver's order.
func (c *Conn) Counters(d Device) (found []Counter, err error) {
	var b nl.Batch
	b.AttrU32(attrDevIndex, d.Index)
	b.AttrU32(attrPortIndex, port)
	err = c.nl.Get(cmdStatGet, b.Bytes(), "read the counters of "+d.Name, func(_ uint16, p []byte) {
		nl.EachAttr(nl.Attrs(p)[attrHWCounters], func(kind uint16, entry []byte) {
			if a := nl.Attrs(entry); kind == attrHWCounter {
				found = append(found, Counter{nl.StringAt(a[attrCounterName]), nl.U64At(a[attrCounterValue])})
			}
		})
	})
	return found, err
}

// QP is a queue pair as the kernel has it.
type QP struct {
	Num, Remote  uint32
	RQPSN, SQPSN uint32
	Type, State  uint8 // as in libibverbs: RC is 2; RTS is 3
	PID          uint32
}

// QPs lists a device's queue pairs: who talks to whom.
func (c *Conn) QPs(d Device) (found []QP, err error) {
	var b nl.Batch
	b.AttrU32(attrDevIndex, d.Index)
	err = c.nl.Dump(cmdQPGet, b.Bytes(), "list the QPs of "+d.Name, func() { found = nil }, func(_ uint16, p []byte) {
		nl.EachAttr(nl.Attrs(p)[attrResQP], func(kind uint16, entry []byte) {
			if q, ok := decodeQP(entry); ok && kind == attrResQPEntry {
				found = append(found, q)
			}
		})
	})
	return found, err
}

// QP is one queue pair of a device, at the same cost however many it has; false: it has none of that number.
func (c *Conn) QP(d Device, num uint32) (q QP, ok bool, err error) {
	var b nl.Batch
	b.AttrU32(attrDevIndex, d.Index)
	b.AttrU32(attrPortIndex, port)
	b.AttrU32(attrResLQPN, num)
	err = c.nl.Get(cmdQPGet, b.Bytes(), fmt.Sprintf("look up QP %#x of %s", num, d.Name), func(_ uint16, p []byte) { q, ok = decodeQP(p) })
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EAGAIN) { // EAGAIN: it is on no port yet
		return QP{}, false, nil
	}
	return q, ok, err
}

func decodeQP(entry []byte) (QP, bool) {
	a := nl.Attrs(entry)
	if len(a[attrResType]) == 0 || len(a[attrResState]) == 0 {
		return QP{}, false
	}
	return QP{
		Num: nl.U32At(a[attrResLQPN]), Remote: nl.U32At(a[attrResRQPN]),
		RQPSN: nl.U32At(a[attrResRQPSN]), SQPSN: nl.U32At(a[attrResSQPSN]),
		Type: a[attrResType][0], State: a[attrResState][0], PID: nl.U32At(a[attrResPID]),
	}, true
}
