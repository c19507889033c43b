//go:build linux

package linux

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/topo"
)

func TestHostsWithSeveralNICsReachEverythingFromEach(t *testing.T) {
	p := plan(t, &topo.Spec{RailOptimised: &topo.RailOptimised{HostsPerGroup: 3, Rails: 2, Spines: 2}})
	_, w := wired(t, testName("rails"), p)
	checkReach(t, w)
}

func TestAFabricOfIPv6WorksAtOnce(t *testing.T) {
	spec := spineLeafSpec(2, 2, 2)
	spec.Addresses = topo.IPv6
	_, w := wired(t, testName("v6"), plan(t, spec))
	checkReach(t, w)
}

const flows, flowSize, firstPort = 64, 1000, 0xc000

// sendFlows sends a datagram from each of 64 source ports of one host to port 4791 of another,
// and waits for each.
func sendFlows(t *testing.T, w *Wiring, src, dst topo.PlanPort) {
	t.Helper()
	var sink net.PacketConn
	if err := w.Node(dst.Ref.Node).Do(func() (err error) {
		sink, err = net.ListenPacket("udp", net.JoinHostPort(dst.Addr.Addr().String(), "4791"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	for i := range flows {
		var c net.Conn
		if err := w.Node(src.Ref.Node).Do(func() (err error) {
			d := net.Dialer{LocalAddr: &net.UDPAddr{IP: src.Addr.Addr().AsSlice(), Port: firstPort + i}}
			c, err = d.Dial("udp", sink.LocalAddr().String())
			return err
		}); err != nil {
			t.Fatal(err)
		}
		_, err := c.Write(make([]byte, flowSize))
		c.Close()
		if err != nil {
			t.Fatal(err)
		}
		_ = sink.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, _, err := sink.ReadFrom(make([]byte, flowSize)); err != nil {
			t.Fatalf("flow %d: %v", i, err)
		}
	}
}

// flowsThrough is how many flows each switch of a tier received since before.
func flowsThrough(t *testing.T, w *Wiring, tier topo.Tier, before map[string]uint64) map[string]int {
	t.Helper()
	out := map[string]int{}
	for name, bytes := range received(t, w, tier) {
		out[name] = int(bytes-before[name]) / (flowSize + 42)
	}
	return out
}

// received is how many bytes each switch of a tier received on all its links.
func received(t *testing.T, w *Wiring, tier topo.Tier) map[string]uint64 {
	t.Helper()
	out := map[string]uint64{}
	for _, sw := range w.Plan().Topology.Switches() {
		if sw.Tier != tier {
			continue
		}
		h, err := w.Node(sw.Name).Handle()
		if err != nil {
			t.Fatal(err)
		}
		links, err := Dump(h.LinkList)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range links {
			if l.Attrs().Name != "lo" {
				out[sw.Name] += l.Attrs().Statistics.RxBytes
			}
		}
	}
	return out
}

// h1 - leaf1 - (spine1 … spine4) - leaf2 - h2: the choice is leaf1's.
func TestEveryFlowTakesTheSpineThatItsPortsAndTheSeedChoose(t *testing.T) {
	for _, family := range []topo.Family{topo.IPv4, topo.IPv6} {
		spec := spineLeafSpec(4, 2, 1)
		spec.Addresses = family
		p := plan(t, spec)
		_, w := wired(t, testName("ecmp-"+string(family)), p)
		hosts := p.Topology.Hosts()
		src, dst := p.Ports(hosts[0].Name)[0], p.Ports(hosts[1].Name)[0]
		before := received(t, w, 2)
		sendFlows(t, w, src, dst)
		got := flowsThrough(t, w, 2, before)
		t.Logf("%s: %v", family, got)
		for spine, n := range got {
			if n < flows/16 || n > flows/2 {
				t.Errorf("%s: %s carried %d of %d flows", family, spine, n, flows)
			}
		}
		if family == topo.IPv6 {
			continue // the kernel's lookup for IPv6 takes no ports
		}
		want := map[string]int{}
		leaf := w.Node(src.Peer.Node)
		for i := range uint16(flows) {
			port, _ := p.Port(topo.PortRef{Node: leaf.Node(), Port: chosen(t, leaf, src.Peer.Port, src.Addr.Addr(), dst.Addr.Addr(), firstPort+i)})
			want[port.Peer.Node]++
		}
		if !maps.Equal(got, want) {
			t.Errorf("the spines carried %v, the kernel's route lookup says %v", got, want)
		}
	}
}

// In a fat tree the edge switch chooses, and then the aggregation switch. Were the second choice
// the first one again, half of the cores would never see a flow.
func TestTiersThatChooseOneAfterTheOtherDontPolarise(t *testing.T) {
	p := plan(t, &topo.Spec{FatTree: &topo.FatTree{K: 4}})
	_, w := wired(t, testName("polarise"), p)
	hosts := p.Topology.Hosts()
	src, dst := p.Ports(hosts[0].Name)[0], p.Ports(hosts[len(hosts)-1].Name)[0]
	before := received(t, w, 3)
	sendFlows(t, w, src, dst)
	got := flowsThrough(t, w, 3, before)
	t.Log(got)
	if len(got) != 4 {
		t.Fatalf("the cores are %v", got)
	}
	for core, n := range got {
		if n < flows/16 {
			t.Errorf("%s carried %d of %d flows", core, n, flows)
		}
	}
}

// chosen asks the kernel which port a switch takes for a UDP packet that arrives on in.
func chosen(t *testing.T, n *Namespace, in string, src, dst netip.Addr, sport uint16) string {
	t.Helper()
	const raIPProto, raSport, raDport = 27, 28, 29 // RTA_IP_PROTO, RTA_SPORT, RTA_DPORT
	var b batch
	b.begin(unix.RTM_GETROUTE, 0, func() string { return "get route" })
	bits := uint8(dst.BitLen())
	b.buf = append(b.buf, family(dst), bits, bits, 0, 0, 0, 0, 0)
	b.u32(0)
	b.attrAddr(unix.RTA_DST, dst)
	b.attrAddr(unix.RTA_SRC, src)
	b.attrU32(unix.RTA_IIF, n.index(in))
	b.attr(raIPProto, []byte{unix.IPPROTO_UDP})
	b.attr(raSport, []byte{byte(sport >> 8), byte(sport)})
	b.attr(raDport, []byte{4791 >> 8, 4791 & 0xff})
	b.end()
	port := ""
	if err := n.route.query(&b, func(kind uint16, body []byte) {
		attrs, err := unixAttrs(body[unix.SizeofRtMsg:])
		if err != nil {
			t.Fatal(err)
		}
		if i := n.byIndex(int(native.Uint32(attrs[unix.RTA_OIF]))); i >= 0 {
			port = n.links[i].Port
		}
	}); err != nil {
		t.Fatalf("%s: %v", n.node, err)
	}
	return port
}

func unixAttrs(b []byte) (map[uint16][]byte, error) {
	out := map[uint16][]byte{}
	for len(b) >= 4 {
		n := int(native.Uint16(b))
		if n < 4 || n > len(b) {
			return nil, fmt.Errorf("attribute of %d bytes in %d", n, len(b))
		}
		out[native.Uint16(b[2:])&0x3fff] = b[4:n]
		b = b[min((n+3)&^3, len(b)):]
	}
	return out, nil
}

func TestSwitchesWithDifferentSeedsChooseDifferentlyAndWithEqualOnesAlike(t *testing.T) {
	choices := func(name string, seed *uint32) (a, b []string) {
		spec := spineLeafSpec(2, 3, 1)
		spec.Switches.HashSeed = seed
		p := plan(t, spec)
		_, w := wired(t, testName(name), p)
		hosts := p.Topology.Hosts()
		port := func(i int) topo.PlanPort { return p.Ports(hosts[i].Name)[0] }
		src, dst := port(0).Addr.Addr(), port(2).Addr.Addr()
		for i := range 32 {
			a = append(a, chosen(t, w.Node("leaf1"), port(0).Peer.Port, src, dst, 0xc000+uint16(i)))
			b = append(b, chosen(t, w.Node("leaf2"), port(1).Peer.Port, src, dst, 0xc000+uint16(i)))
		}
		return a, b
	}
	one := uint32(1)
	a, b := choices("same", &one)
	if !slices.Equal(a, b) {
		t.Errorf("equal seeds chose\n%v\n%v", a, b)
	}
	if a[0] == "" || len(slices.Compact(slices.Sorted(slices.Values(a)))) != 2 {
		t.Errorf("32 flows took ports %v", a)
	}
	a, b = choices("differ", nil)
	if slices.Equal(a, b) {
		t.Errorf("different seeds chose alike: %v", a)
	}
}

func TestLinksAreMadeAsPlannedAndChangeNoPackets(t *testing.T) {
	spec := spineLeafSpec(1, 2, 2)
	spec.MTU = 4321
	p := plan(t, spec)
	_, w := wired(t, testName("as-planned"), p)
	for _, n := range w.Namespaces() {
		h, err := n.Handle()
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range p.Ports(n.Node()) {
			l, ok := n.Link(port.Ref.Port)
			if !ok {
				t.Fatalf("%s has no link", port.Ref)
			}
			link, err := h.LinkByName(l.Name)
			if err != nil {
				t.Fatalf("%s: %v", port.Ref, err)
			}
			at := link.Attrs()
			if at.Index != l.Index || at.MTU != 4321 || at.HardwareAddr.String() != port.MAC.String() || at.OperState != netlink.OperUp {
				t.Errorf("%s is index %d (want %d), MTU %d, MAC %s (want %s), %s", port.Ref, at.Index, l.Index, at.MTU, at.HardwareAddr, port.MAC, at.OperState)
			}
			if on := featuresOn(t, n, l.Name); len(on) > 0 {
				t.Errorf("%s still has %v", port.Ref, on)
			}
			addrs, err := h.AddrList(link, netlink.FAMILY_ALL)
			if err != nil || len(addrs) != 1 || addrs[0].IPNet.String() != port.Addr.String() {
				t.Errorf("%s has addresses %v (error %v), want %s alone", port.Ref, addrs, err, port.Addr)
			}
		}
		if err := n.Do(func() error { return checkSettings(p.Node(n.Node())) }); err != nil {
			t.Errorf("%s: %v", n.Node(), err)
		}
	}
}

func checkSettings(node *topo.Node) error {
	want := map[string]string{"ipv4/conf/all/rp_filter": "0", "ipv4/conf/eth0/rp_filter": "0", "ipv6/conf/eth0/disable_ipv6": "1"}
	if node.Role == topo.Switch {
		want["ipv4/conf/eth0/forwarding"] = "1"
		want["ipv4/fib_multipath_hash_policy"] = "3"
		want["ipv4/fib_multipath_hash_seed"] = fmt.Sprint(node.HashSeed)
	} else {
		want["ipv4/ip_forward"] = "0"
	}
	for k, v := range want {
		b, err := os.ReadFile("/proc/sys/net/" + k)
		if err != nil || strings.TrimSpace(string(b)) != v {
			return fmt.Errorf("%s is %q (error %v), want %s", k, b, err, v)
		}
	}
	return nil
}

// It also proves that 'ip netns exec' takes our namespaces for its own.
func TestOneFlowStaysOnOneCPU(t *testing.T) {
	_, w := wired(t, testName("rps"), spineLeaf(t, 1, 1, 2))
	for _, n := range w.Namespaces() {
		for _, l := range n.Links() {
			out, err := exec.Command("ip", "netns", "exec", n.Name(), "cat", "/sys/class/net/"+l.Name+"/queues/rx-0/rps_cpus").CombinedOutput()
			if err != nil || strings.Trim(strings.TrimSpace(string(out)), "0,") == "" {
				t.Errorf("%s:%s: rps_cpus is %q (error %v)", n.Node(), l.Port, out, err)
			}
		}
	}
}

// featuresOn returns the offloads that a link has on, asked for one by one with the requests that
// 'ethtool -k' used first.
func featuresOn(t *testing.T, n *Namespace, link string) []string {
	t.Helper()
	var on []string
	for name, cmd := range map[string]uint32{"rx-checksum": 0x14, "tx-checksum": 0x16, "scatter-gather": 0x18, "tso": 0x1e, "gso": 0x23, "gro": 0x2b} {
		v := struct{ cmd, value uint32 }{cmd: cmd}
		if err := n.route.ethtool(link, unsafe.Pointer(&v)); err != nil {
			t.Fatalf("%s:%s: read %s: %v", n.Node(), link, name, err)
		}
		if v.value != 0 {
			on = append(on, name)
		}
	}
	return on
}

func TestRestoreBringsBackWhatAnInterfaceSetDownForgot(t *testing.T) {
	p := spineLeaf(t, 1, 2, 1)
	_, w := wired(t, testName("restore"), p)
	up := p.Ports("leaf1")[1] // to the spine: the only way
	if up.Peer.Node != "spine1" {
		up = p.Ports("leaf1")[0]
	}
	n, l, _ := w.Link(up.Ref)
	h, err := n.Handle()
	if err != nil {
		t.Fatal(err)
	}
	link, err := h.LinkByIndex(l.Index)
	if err != nil {
		t.Fatal(err)
	}
	count := func() (routes, neighbours int) {
		rs, err := Dump(func() ([]netlink.Route, error) { return h.RouteList(link, netlink.FAMILY_V4) })
		if err != nil {
			t.Fatal(err)
		}
		ns, err := Dump(func() ([]netlink.Neigh, error) { return h.NeighList(l.Index, netlink.FAMILY_V4) })
		if err != nil {
			t.Fatal(err)
		}
		return len(rs), len(ns)
	}
	r0, n0 := count()
	if err := h.LinkSetDown(link); err != nil {
		t.Fatal(err)
	}
	if err := h.LinkSetUp(link); err != nil {
		t.Fatal(err)
	}
	if r1, n1 := count(); r1 >= r0 || n1 >= n0 {
		t.Fatalf("setting the link down forgot nothing: routes %d, then %d; neighbours %d, then %d", r0, r1, n0, n1)
	}
	if err := w.Restore("leaf1"); err != nil {
		t.Fatal(err)
	}
	if r2, n2 := count(); r2 != r0 || n2 != n0 {
		t.Errorf("routes %d, restored %d; neighbours %d, restored %d", r0, r2, n0, n2)
	}
	checkReach(t, w)
}

func TestUnsteeredNodesLeaveFramesOnTheCPUThatSentThem(t *testing.T) {
	p := plan(t, &topo.Spec{Star: &topo.Star{Hosts: 2}})
	bed := acquire(t, testName("steer"))
	w, err := bed.Wire(t.Context(), p, WireOptions{Unsteered: func(n *topo.Node) bool { return n.Name == "h1" }})
	if err != nil {
		t.Fatal(err)
	}
	for node, steered := range map[string]bool{"h1": false, "h2": true} {
		var mask string
		err := w.Node(node).Do(func() error {
			b, err := os.ReadFile("/proc/sys/net/core/rps_default_mask")
			mask = strings.Trim(string(b), "0,\n")
			return err
		})
		if err != nil || (mask != "") != steered {
			t.Errorf("%s: links are steered over CPUs %q, %v", node, mask, err)
		}
	}
}
