//go:build linux

package linux

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/internal/bareloop"
	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/topo"
)

// BenchmarkBringUp compares a testbed of 76 namespaces and 96 links, addressed, routed, shaped and
// carrying, with a bare netlink loop that makes 76 namespaces and 96 veths and nothing else. Each round does both, so that both see the same machine; the medians
// count. The project's bound is a factor of 2 for bringing up, and as much again for taking
// down (which the bare loop doesn't do; it is compared with the loop's bringing up).
//
//	go test -run '^$' -bench BringUp -benchtime 10x ./testbed/linux
func BenchmarkBringUp(b *testing.B) {
	testneed.Root(b)
	p := spineLeaf(b, 4, 8, 8)
	if n, l := len(p.Topology.Nodes), len(p.Topology.Links); n != 76 || l != 96 {
		b.Fatalf("the fabric has %d nodes and %d links", n, l)
	}
	for name, opt := range map[string]WireOptions{"links": {}, "cables": {Cables: true}} {
		b.Run(name, func(b *testing.B) { compare(b, p, opt) })
	}
}

func compare(b *testing.B, p *topo.Plan, opt WireOptions) {
	var bare, up, down []time.Duration
	for i := range b.N {
		bare = append(bare, bareloop.Run(b, p))
		u, d := upAndDown(b, p, i, opt)
		up, down = append(up, u), append(down, d)
	}
	m := bareloop.Median(bare)
	b.ReportMetric(m.Seconds()*1e3, "bare-ms")
	b.ReportMetric(bareloop.Median(up).Seconds()*1e3, "up-ms")
	b.ReportMetric(bareloop.Median(down).Seconds()*1e3, "down-ms")
	b.ReportMetric(bareloop.Median(up).Seconds()/m.Seconds(), "up/bare")
	b.ReportMetric(bareloop.Median(down).Seconds()/m.Seconds(), "down/bare")
	b.ReportMetric(0, "ns/op")
}

func upAndDown(b *testing.B, p *topo.Plan, round int, opt WireOptions) (up, down time.Duration) {
	bareloop.Quiesce()
	start := time.Now()
	bed, err := Acquire(context.Background(), testName(fmt.Sprintf("bench%d", round)))
	if err != nil {
		b.Fatal(err)
	}
	w, err := bed.Wire(context.Background(), p, opt)
	if err == nil {
		err = addQdiscs(w)
	}
	if err == nil && opt.Cables {
		err = w.Connect(context.Background())
	}
	if err != nil {
		_ = bed.Close(context.Background())
		b.Fatal(err)
	}
	up = time.Since(start)
	start = time.Now()
	if err := bed.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	return up, time.Since(start)
}

// addQdiscs gives every port an HTB shaper with a class and a byte FIFO under it.
func addQdiscs(w *Wiring) error {
	const tcaKind, tcaOptions, qdiscAdd = 1, 2, unix.NLM_F_CREATE | unix.NLM_F_EXCL
	object := func(b *batch, what uint16, l Link, handle, parent uint32, kind string, options func()) {
		b.begin(what, qdiscAdd, func() string { return l.Port + ": add " + kind })
		b.u32(0)
		b.u32(uint32(l.Index))
		b.u32(handle)
		b.u32(parent)
		b.u32(0)
		b.attrString(tcaKind, kind)
		options()
		b.end()
	}
	rate := func() []byte { // struct tc_ratespec: 100 Mb/s
		return append([]byte{3, 1, 0, 0, 0xff, 0xff, 0, 0}, native.AppendUint32(nil, 12_500_000)...)
	}
	return each(context.Background(), len(w.order), func(i int) error {
		n := w.order[i]
		var b batch
		for _, l := range n.links {
			object(&b, unix.RTM_NEWQDISC, l, 1<<16, 0xffffffff, "htb", func() {
				done := b.nest(tcaOptions)
				b.attr(2, append(append(native.AppendUint32(nil, 3), native.AppendUint32(nil, 10)...), make([]byte, 12)...)) // TCA_HTB_INIT
				done()
			})
			object(&b, unix.RTM_NEWTCLASS, l, 1<<16|0x10, 1<<16, "htb", func() {
				done := b.nest(tcaOptions)
				parms := append(rate(), rate()...)
				for _, v := range []uint32{200_000, 200_000, 0, 0, 0} {
					parms = native.AppendUint32(parms, v)
				}
				b.attr(1, parms) // TCA_HTB_PARMS
				done()
			})
			object(&b, unix.RTM_NEWQDISC, l, 2<<16, 1<<16|0x10, "bfifo", func() {
				b.attr(tcaOptions, native.AppendUint32(nil, 2<<20))
			})
		}
		return n.route.send(&b)
	})
}
