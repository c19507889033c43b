//go:build linux

package engine

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/testbed/kernel/nl"
	"github.com/rocebed/rocebed/topo"
)

// A port that loses its carrier loses what waits, its accounts and flows with it, and carries on when it is back.
func TestAPortThatGoesDownForgetsWhatWaited(t *testing.T) {
	b := lay(t, func(p *Port) { p.Paced = true })
	defer b.flood(24, 9)()
	h2, _ := b.w.Plan().Port(topo.PortRef{Node: "h2", Port: "eth0"})
	f, err := b.e.OpenFlow(FlowKey{Port: toH2, To: h2.Addr.Addr(), QPN: 1}, 100*topo.Kbps)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		b.until(toH2, "the queue fills", func(r Reading) bool { return r.Queues[3].Bytes > 40_000 })
		l, _ := b.w.Node("leaf1").Link("eth1")
		set := func(up uint32) {
			err := b.w.Node("leaf1").Do(func() error {
				c, err := nl.Open(unix.NETLINK_ROUTE)
				if err != nil {
					return err
				}
				defer c.Close()
				var batch nl.Batch
				batch.Begin(unix.RTM_SETLINK, 0, "set link")
				batch.U8(unix.AF_UNSPEC)
				batch.Zero(3)
				batch.U32(uint32(l.Index))
				batch.U32(up)
				batch.U32(unix.IFF_UP)
				batch.End()
				return c.Send(&batch)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		set(0)
		b.until(toH1, "the accounts are empty", func(r Reading) bool {
			return r.Groups[3].Held == 0 && r.Groups[3].Headroom == 0 && !r.Groups[3].Pausing
		})
		if r := b.read(toH2); r.Packets != 0 || r.Queues[3].Packets != 0 || r.Queues[3].Bytes != 0 {
			t.Errorf("round %d: down, and what waits is %+v", round, r.Queues[3])
		}
		if r, err := f.Read(); err != nil || r.Packets != 0 {
			t.Errorf("round %d: of the flow waits %+v, %v", round, r, err)
		}
		set(unix.IFF_UP)
		if err := b.w.Restore("leaf1"); err != nil {
			t.Fatal(err)
		}
		before := b.read(toH2).Queues[3].TxFrames
		b.until(toH2, "it carries on", func(r Reading) bool { return r.Queues[3].TxFrames > before+50 })
	}
}
