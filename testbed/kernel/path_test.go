//go:build linux

package kernel

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/topo"
)

// The shaper is the line: whatever is sent, no more than the rate comes out, charged with what
// Ethernet adds. (That it is not much less is the machine's doing, and is only logged.)
func TestALinkCarriesNoMoreThanItsRate(t *testing.T) {
	f := build(t, star(2, 2*topo.Gbps, time.Microsecond), Config{})
	const size, count = 1 << 17, 40
	took := write(t, f, "h1", "h2", size, 4, count, patient)
	const onTheLine = (4096 + 14 + 20 + 8 + 12 + 4 + 24) * size / 4096 * count // headers, BTH, ICRC, Ethernet's own
	rate := float64(onTheLine) * 8 / testDilation.Fabric(took).Seconds()
	t.Logf("%.2f Gb/s on a link of 2", rate/1e9)
	if rate > 2e9*1.02 {
		t.Errorf("%.3f Gb/s on a link of 2 Gb/s", rate/1e9)
	}
}

// spine1   spine2
//
//	│  ╲ ╱  │
//	│  ╱ ╲  │
//
// leaf1     leaf2
//
//	 │         │
//	h1        h2
func TestAnUplinkThatIsDownIsRoutedAroundAndUsedAgain(t *testing.T) {
	delay := 10 * time.Microsecond
	spec := topo.Spec{SpineLeaf: &topo.SpineLeaf{Spines: 2, Leaves: 2, HostsPerLeaf: 1}, LinkSettings: topo.LinkSettings{Rate: 2 * topo.Gbps, Delay: &delay}}
	f := build(t, spec, Config{})
	uplink := func(spine string) topo.PortRef {
		for _, p := range f.Plan().Ports("leaf1") {
			if p.Peer.Node == spine {
				return p.Ref
			}
		}
		t.Fatalf("leaf1 has no port to %s", spine)
		return topo.PortRef{}
	}
	sent := func(spine string) float64 {
		return collect(t, f).of(t, "if_tx_packets", "leaf1", uplink(spine).Port)
	}
	down := inject(t, f, faults.Spec{Name: "down", Kind: faults.LinkDown, At: []string{"leaf1-spine1"}})
	before := sent("spine1")
	for range 4 { // four QPs, four UDP source ports
		write(t, f, "h1", "h2", 1<<14, 1, 4, patient)
	}
	if n := sent("spine1") - before; n != 0 {
		t.Errorf("%v packets were sent up a link that is down", n)
	}
	down.heal()
	// A QP's source port is random: 32 of them don't all hash to the same uplink.
	before = sent("spine1")
	for i := 0; sent("spine1") == before; i++ {
		if i == 32 {
			t.Fatal("32 QPs, and none went up the link that is up again")
		}
		write(t, f, "h1", "h2", 1<<14, 1, 1, patient)
	}
}

// roce counts packets to RoCEv2's port in a capture.
type roceCount struct {
	mu   sync.Mutex
	dest [6]byte
	n    uint64
}

func (r *roceCount) Packet(_ loop.Time, data []byte, _ int) error {
	const udpPort = 14 + 20 + 2
	if len(data) < udpPort+2 || binary.BigEndian.Uint16(data[udpPort:]) != 4791 || [6]byte(data[:6]) != r.dest {
		return nil
	}
	r.mu.Lock()
	r.n++
	r.mu.Unlock()
	return nil
}

// What was lost on a cable was seen leaving and not seen arriving, and counters agree with both.
func TestCapturesAtTheEndsOfALossyCableDifferByWhatItLost(t *testing.T) {
	f := build(t, star(2, 2*topo.Gbps, 10*time.Microsecond), Config{Seed: 3})
	ends := map[topo.PortRef]*roceCount{}
	stops := map[topo.PortRef]func() (uint64, uint64, error){}
	to, _ := f.Plan().Port(topo.PortRef{Node: "h2", Port: "eth0"})
	for _, ref := range []topo.PortRef{{Node: "leaf1", Port: "eth1"}, {Node: "h2", Port: "eth0"}} {
		ends[ref] = &roceCount{dest: to.MAC}
		stop, err := f.Capture(context.Background(), ref, ends[ref])
		if err != nil {
			t.Fatal(err)
		}
		stops[ref] = stop
	}
	loss := inject(t, f, towardsH2(faults.Loss, func(s *faults.Spec) { s.EveryNth = 40 }))
	before := collect(t, f)
	write(t, f, "h1", "h2", 1<<16, 2, 30, hasty)
	hits, after := loss.hits(), collect(t, f)
	for ref, stop := range stops {
		if _, missed, err := stop(); err != nil || missed > 0 {
			t.Errorf("capture at %v: %d missed, %v", ref, missed, err)
		}
	}
	left, came := ends[topo.PortRef{Node: "leaf1", Port: "eth1"}].n, ends[topo.PortRef{Node: "h2", Port: "eth0"}].n
	if left != came+hits || hits == 0 {
		t.Errorf("%d packets were seen leaving and %d arriving; the fault counts %d", left, came, hits)
	}
	if n := uint64(delta(t, before, after, "rcvd_pkts", "h2")); n != came {
		t.Errorf("%d packets were seen arriving and the NIC counts %d", came, n)
	}
}
