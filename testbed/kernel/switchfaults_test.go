//go:build linux

package kernel

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

// h1 ─┐
// h2 ─┼─ leaf1 ──(here)── h3     two senders, one receiver, and a marker
func TestFaultsInASwitchsQueuesAreFeltCountedAndHealed(t *testing.T) {
	const frame = 4096 + 58
	marker := &fabric.ECNSettings{Marker: fabric.MarkerRED, KMin: 10 * frame, KMax: 300 * frame, PMax: 0.2}
	f := build(t, star(3, 2*topo.Gbps, 10*time.Microsecond), Config{Switches: fabric.SwitchSettings{SwitchModel: fabric.SwitchModel{ECN: marker}}})
	type felt struct{ sent, marked, dropped float64 }
	crowd := func() felt {
		read := func() felt {
			r := collect(t, f)
			return felt{r.of(t, "if_tx_packets", "leaf1", "eth2"), r.of(t, "ecn_marked", "leaf1", "eth2", slotMark), r.of(t, "qdisc_drops", "leaf1", "eth2", slotQueue)}
		}
		before := read()
		var both sync.WaitGroup
		both.Go(func() { write(t, f, "h2", "h3", 1<<16, 4, 12, hasty) })
		write(t, f, "h1", "h3", 1<<16, 4, 12, hasty)
		both.Wait()
		after := read()
		return felt{after.sent - before.sent, after.marked - before.marked, after.dropped - before.dropped}
	}
	sound := crowd()
	if sound.marked == 0 || sound.dropped > 0 {
		t.Fatalf("without a fault: %+v", sound)
	}
	for name, c := range map[string]struct {
		spec faults.Spec
		as   func(felt) bool
	}{
		"ecn off": {faults.Spec{Kind: faults.ECNOff, At: []string{"leaf1:eth2"}}, func(x felt) bool { return x.marked == 0 && x.dropped == 0 }},
		"ecn at once": {faults.Spec{Kind: faults.ECNThresholds, SwitchKeys: faults.SwitchKeys{KMin: 1, KMax: 2, PMax: 1}, At: []string{"leaf1:eth2"}},
			func(x felt) bool { return x.marked > sound.marked*3/2 && x.dropped == 0 }},
		"a small buffer": {faults.Spec{Kind: faults.BufferShrink, SwitchKeys: faults.SwitchKeys{Buffer: 40 * frame}, At: []string{"leaf1"}}, func(x felt) bool { return x.dropped > 0 }},
	} {
		c.spec.Name = name
		s := inject(t, f, c.spec)
		got := crowd()
		hits := s.hits()
		s.heal()
		t.Logf("%s: %+v, %d hits; without it %+v", name, got, hits, sound)
		if !c.as(got) {
			t.Errorf("%s: %+v; without it %+v", name, got, sound)
		}
		if float64(hits) < got.sent { // of a whole switch all ports count
			t.Errorf("%s: %v packets were sent meanwhile, and %d are counted", name, got.sent, hits)
		}
		if again := crowd(); again.marked == 0 || again.dropped > 0 {
			t.Errorf("%s: healed, and %+v", name, again)
		}
	}
	// What waits stays where it is, however often the marker changes.
	before := collect(t, f)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		crowd()
	}()
	times := 0
	for done := false; !done; times++ {
		inject(t, f, faults.Spec{Name: "off and on", Kind: faults.ECNOff, At: []string{"leaf1"}}).heal()
		select {
		case <-sent:
			done = true
		default:
		}
	}
	if n := delta(t, before, collect(t, f), "out_of_seq_request", "h3"); n != 0 || times < 2 {
		t.Errorf("the marker went off and on %d times, and %v packets came out of sequence", times, n)
	}
	for what, s := range map[string]faults.Spec{
		"all priorities": {Kind: faults.ECNOff, At: []string{"leaf1:eth2"}, SwitchKeys: faults.SwitchKeys{Priorities: faults.Priorities{3}}},
		"not less than":  {Kind: faults.BufferShrink, SwitchKeys: faults.SwitchKeys{Buffer: 4 << 20}, At: []string{"leaf1"}},
	} {
		s.Name = "x"
		if err := apply(f, s); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
}

// leaves is two leaves and two spines, a host each.
//
//	spine1   spine2
//	│  ╲ ╱  │
//	│  ╱ ╲  │
//	leaf1     leaf2
//	 │         │
//	h1        h2
func leaves(t *testing.T) *Fabric {
	delay := 10 * time.Microsecond
	return build(t, topo.Spec{SpineLeaf: &topo.SpineLeaf{Spines: 2, Leaves: 2, HostsPerLeaf: 1}, LinkSettings: topo.LinkSettings{Rate: 2 * topo.Gbps, Delay: &delay}}, Config{})
}

// uplink is a leaf's port to a spine.
func uplink(t *testing.T, f *Fabric, leaf, spine string) topo.PortRef {
	t.Helper()
	for _, p := range f.Plan().Ports(leaf) {
		if p.Peer.Node == spine {
			return p.Ref
		}
	}
	t.Fatalf("%s has no port to %s", leaf, spine)
	return topo.PortRef{}
}

func txPackets(t *testing.T, f *Fabric, ref topo.PortRef) uint64 {
	t.Helper()
	s, err := linkStateOf(f.nodes[ref.Node], ref.Port)
	if err != nil {
		t.Fatal(err)
	}
	return s.stats.txPackets
}

// datagrams go from h1 to h2, from source ports of one's choice.
type datagrams struct {
	t      *testing.T
	f      *Fabric
	to     netip.AddrPort
	server net.PacketConn
}

func newDatagrams(t *testing.T, f *Fabric) *datagrams {
	t.Helper()
	to, _ := f.Plan().Port(topo.PortRef{Node: "h2", Port: "eth0"})
	d := &datagrams{t: t, f: f, to: netip.AddrPortFrom(to.Addr.Addr(), 5000)}
	if err := f.wiring.Node("h2").Do(func() (err error) { d.server, err = net.ListenPacket("udp", d.to.String()); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.server.Close() })
	return d
}

// send says whether one arrives in time, and by which spine it left leaf1.
func (d *datagrams) send(port int, patience time.Duration) (arrived bool, via string) {
	d.t.Helper()
	var c net.PacketConn
	if err := d.f.wiring.Node("h1").Do(func() (err error) { c, err = net.ListenUDP("udp", &net.UDPAddr{Port: port}); return err }); err != nil {
		d.t.Fatal(err)
	}
	defer c.Close()
	one := uplink(d.t, d.f, "leaf1", "spine1")
	before := txPackets(d.t, d.f, one)
	if _, err := c.WriteTo(make([]byte, 100), net.UDPAddrFromAddrPort(d.to)); err != nil {
		d.t.Fatal(err)
	}
	if err := d.server.SetReadDeadline(time.Now().Add(patience)); err != nil {
		d.t.Fatal(err)
	}
	_, _, err := d.server.ReadFrom(make([]byte, 200))
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		d.t.Fatal(err)
	}
	via = "spine2"
	if txPackets(d.t, d.f, one) > before {
		via = "spine1"
	}
	return err == nil, via
}

func TestAnotherHashSeedSpreadsFlowsInAnotherWayWhileItLasts(t *testing.T) {
	f := leaves(t)
	d := newDatagrams(t, f)
	const flows = 16
	spread := func() (out [flows]string) {
		for i := range out {
			arrived, via := d.send(6000+i, 5*time.Second)
			if !arrived {
				t.Fatalf("a datagram from port %d did not arrive", 6000+i)
			}
			out[i] = via
		}
		return out
	}
	before := spread()
	seed := uint64(f.Plan().Node("leaf1").HashSeed) ^ 0x5bd1e995
	s := inject(t, f, faults.Spec{Name: "seed", Kind: faults.HashSeed, SwitchKeys: faults.SwitchKeys{HashSeed: &seed}, At: []string{"leaf1"}})
	during := spread()
	if n := s.hits(); n < flows {
		t.Errorf("%d datagrams went through and %d packets are counted", flows, n)
	}
	s.heal()
	if after := spread(); during == before || after != before {
		t.Errorf("they went by\n%v, with another seed by\n%v, and with the old one again by\n%v", before, during, after)
	}
	own := uint64(f.Plan().Node("leaf1").HashSeed)
	if err := apply(f, faults.Spec{Name: "same", Kind: faults.HashSeed, SwitchKeys: faults.SwitchKeys{HashSeed: &own}, At: []string{"leaf1"}}); err == nil {
		t.Error("a seed that is there already was taken")
	}
}

func TestASwitchThatHearsLateOfALinkForwardsIntoNothingUntilThen(t *testing.T) {
	f := leaves(t)
	d := newDatagrams(t, f)
	port := 0
	for p := 6000; port == 0; p++ {
		if _, via := d.send(p, 5*time.Second); via == "spine1" {
			port = p
		}
		if p == 6064 {
			t.Fatal("64 flows, and none goes by spine1")
		}
	}
	late := inject(t, f, faults.Spec{Name: "late", Kind: faults.RouteLate, Delay: 4 * time.Second / time.Duration(testDilation), At: []string{"leaf*"}})
	down := inject(t, f, faults.Spec{Name: "down", Kind: faults.LinkDown, At: []string{"leaf1-spine1"}})
	if arrived, _ := d.send(port, 200*time.Millisecond); arrived {
		t.Error("a datagram arrived over a link that is down")
	}
	if n := late.hits(); n != 0 {
		t.Fatalf("%d routes changed in less than the delay, or this machine stood still", n)
	}
	for until := time.Now().Add(20 * time.Second); late.hits() < 2; { // leaf1's and leaf2's
		if time.Now().After(until) {
			t.Fatalf("%d routes changed", late.hits())
		}
		<-time.After(50 * time.Millisecond)
	}
	if arrived, via := d.send(port, 5*time.Second); !arrived || via != "spine2" {
		t.Errorf("routes have changed, and a datagram goes by %s, arrives: %v", via, arrived)
	}
	down.heal()
	late.heal() // what it has not heard of by now it hears at once
	if n := late.hits(); n != 4 {
		t.Errorf("%d changes came late to two leaves, of a link that went down and came up", n)
	}
	if arrived, via := d.send(port, 5*time.Second); !arrived || via != "spine1" {
		t.Errorf("healed, and a datagram goes by %s, arrives: %v", via, arrived)
	}
}

func TestASwitchRebootsIsRoutedRoundAndComesBackByItself(t *testing.T) {
	f := leaves(t)
	lost := func() (n uint32) {
		for _, leaf := range []string{"leaf1", "leaf2"} {
			up := uplink(t, f, leaf, "spine1")
			s, err := linkStateOf(f.nodes[leaf], up.Port)
			if err != nil {
				t.Fatal(err)
			}
			n += s.carrierLost
		}
		return n
	}
	before := lost()
	boot := inject(t, f, faults.Spec{Name: "boot", Kind: faults.Reboot, Down: 2 * time.Second / time.Duration(testDilation), At: []string{"spine1"}})
	sent := txPackets(t, f, uplink(t, f, "leaf1", "spine1"))
	write(t, f, "h1", "h2", 1<<14, 1, 4, patient)
	if n := txPackets(t, f, uplink(t, f, "leaf1", "spine1")) - sent; n != 0 {
		t.Errorf("%d packets were sent to a switch that is off", n)
	}
	if n := lost() - before; n != 2 || boot.hits() != 1 {
		t.Errorf("ports across its links lost their carrier %d times, hits %d", n, boot.hits())
	}
	if err := apply(f, faults.Spec{Name: "down", Kind: faults.LinkDown, At: []string{"leaf1-spine1"}}); err == nil {
		t.Error("a link of a switch that is off was taken down")
	}
	for until := time.Now().Add(20 * time.Second); ; {
		up, _, _, err := f.carrier(uplink(t, f, "leaf2", "spine1"))
		if err != nil {
			t.Fatal(err)
		}
		if up {
			break
		}
		if time.Now().After(until) {
			t.Fatal("it has not come back")
		}
		<-time.After(20 * time.Millisecond)
	}
	boot.heal()
	d := newDatagrams(t, f)
	for p := 6000; ; p++ {
		arrived, via := d.send(p, 5*time.Second)
		if !arrived {
			t.Fatalf("a datagram by %s did not arrive", via)
		}
		if via == "spine1" {
			break
		}
		if p == 6064 {
			t.Fatal("64 flows, and none goes by the switch that is back")
		}
	}
	// Healed earlier than it would come back by itself.
	boot = inject(t, f, faults.Spec{Name: "boot", Kind: faults.Reboot, Down: 10 * time.Minute / time.Duration(testDilation), At: []string{"spine1"}})
	boot.heal()
	write(t, f, "h1", "h2", 1<<14, 1, 4, patient)
}
