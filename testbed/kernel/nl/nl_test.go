//go:build linux

package nl

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/internal/testleak"
)

func TestMain(m *testing.M) { testleak.Main(m) }

func TestAttributesComeBackAsTheyWerePut(t *testing.T) {
	var b Batch
	b.Begin(unix.RTM_NEWQDISC, unix.NLM_F_CREATE, "x")
	b.AttrString(1, "htb")
	b.AttrU8(2, 7)
	b.AttrU64(3, 1<<40)
	b.Nest(4, func() {
		b.AttrU32(5, 9)
		b.Attr(6, []byte{1, 2, 3})
	})
	b.End()
	m, rest, err := next(b.Bytes())
	if err != nil || len(rest) > 0 || m.kind != unix.RTM_NEWQDISC || m.flags != unix.NLM_F_CREATE|unix.NLM_F_REQUEST || m.seq != 1 {
		t.Fatalf("%+v, %d bytes more, %v", m, len(rest), err)
	}
	a := Attrs(m.payload)
	inner := Attrs(a[4])
	if StringAt(a[1]) != "htb" || a[2][0] != 7 || U64At(a[3]) != 1<<40 || U32At(inner[5]) != 9 || !bytes.Equal(inner[6], []byte{1, 2, 3}) {
		t.Errorf("%v", a)
	}
}

// A real socket and the kernel's real answers: the first failure is reported with its label and
// the kernel's word, and what comes after it is tried all the same.
func TestTheFirstFailureOfABatchIsNamedAndTheRestIsTried(t *testing.T) {
	c, err := Open(unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := func(b *Batch, index uint32, label string) {
		b.Begin(unix.RTM_GETLINK, 0, label)
		b.Zero(4)
		b.U32(index)
		b.Zero(8)
		b.End()
	}
	var b Batch
	ask(&b, 1<<30, "look for what isn't there")
	ask(&b, 1, "look for lo")
	ask(&b, 1<<30+1, "and again")
	err = c.Send(&b)
	if !errors.Is(err, unix.ENODEV) || !strings.HasPrefix(err.Error(), "look for what isn't there: ") {
		t.Errorf("got %v", err)
	}
	if b.Len() != 0 {
		t.Error("the batch was not emptied")
	}
	ask(&b, 1<<30, "look for what isn't there")
	if err := c.Send(&b, unix.ENODEV); err != nil {
		t.Errorf("a forgiven error: %v", err)
	}
	// The connection is in step still.
	found := 0
	err = c.Dump(unix.RTM_GETLINK, make([]byte, unix.SizeofIfInfomsg), "list links", func() { found = 0 }, func(kind uint16, _ []byte) {
		if kind == unix.RTM_NEWLINK {
			found++
		}
	})
	if err != nil || found == 0 {
		t.Errorf("%d links, %v", found, err)
	}
}

func TestAClosedConnectionSaysSo(t *testing.T) {
	c, err := Open(unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Fatal(err)
	}
	var b Batch
	b.Begin(unix.RTM_GETLINK, 0, "x")
	b.End()
	if err := c.Send(&b); !errors.Is(err, unix.EBADF) {
		t.Errorf("got %v", err)
	}
}

func FuzzMessagesFromTheKernelAreReadOrRefused(f *testing.F) {
	var b Batch
	b.Begin(unix.NLMSG_ERROR, 0, "x")
	b.U32(0xfffffffe)
	b.Zero(16)
	b.AttrString(1, "why")
	b.End()
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, in []byte) {
		for len(in) > 0 {
			m, rest, err := next(in)
			if err != nil {
				return
			}
			_ = ackError(m, []string{"x"}, nil)
			EachAttr(m.payload, func(_ uint16, v []byte) { _ = Attrs(v) })
			if len(rest) >= len(in) {
				t.Fatal("no progress")
			}
			in = rest
		}
	})
}
