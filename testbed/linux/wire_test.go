//go:build linux

package linux

import (
	"fmt"
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

// spine1 spine2 spine3 spine4      64 source ports from one host to one host:
//
//	  |  \/  |  \/ |  \/  |        every spine carries some
//	leaf1              leaf2
//	  |                  |
//	host                host
func TestFlowsSpreadOverEverySpineByTheirPorts(t *testing.T) {
	p := spineLeaf(t, 4, 2, 1)
	_, w := wired(t, testName("ecmp"), p)
	hosts := p.Topology.Hosts()
	src, dst := p.Ports(hosts[0].Name)[0], p.Ports(hosts[1].Name)[0]
	var sink net.PacketConn
	if err := w.Node(dst.Ref.Node).Do(func() (err error) {
		sink, err = net.ListenPacket("udp4", net.JoinHostPort(dst.Addr.Addr().String(), "4791"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	before := spineBytes(t, w)
	const flows, size = 64, 1000
	for i := range flows {
		var c net.Conn
		if err := w.Node(src.Ref.Node).Do(func() (err error) {
			d := net.Dialer{LocalAddr: &net.UDPAddr{IP: src.Addr.Addr().AsSlice(), Port: 0xc000 + i}}
			c, err = d.Dial("udp4", sink.LocalAddr().String())
			return err
		}); err != nil {
			t.Fatal(err)
		}
		_, err := c.Write(make([]byte, size))
		c.Close()
		if err != nil {
			t.Fatal(err)
		}
		_ = sink.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, _, err := sink.ReadFrom(make([]byte, size)); err != nil {
			t.Fatalf("flow %d: %v", i, err)
		}
	}
	total := 0
	for spine, after := range spineBytes(t, w) {
		n := int(after-before[spine]) / (size + 42)
		t.Logf("%s carried %d of %d flows", spine, n, flows)
		// With a fair hash, none of 4 spines gets under 4 or over 32 of 64 flows but once in
		// ten thousand; the hash and its seeds are fixed, so that it is the same every time.
		if n < flows/16 || n > flows/2 {
			t.Errorf("%s carried %d of %d flows", spine, n, flows)
		}
		total += n
	}
	if total != flows {
		t.Errorf("the spines carried %d flows of %d", total, flows)
	}
}

// spineBytes is what each spine received on all its links.
func spineBytes(t *testing.T, w *Wiring) map[string]uint64 {
	t.Helper()
	out := map[string]uint64{}
	for _, n := range w.Namespaces() {
		if !strings.HasPrefix(n.Node(), "spine") {
			continue
		}
		h, err := n.Handle()
		if err != nil {
			t.Fatal(err)
		}
		links, err := Dump(h.LinkList)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range links {
			if l.Attrs().Name != "lo" {
				out[n.Node()] += l.Attrs().Statistics.RxBytes
			}
		}
	}
	return out
}

// chosen asks the kernel which port a switch takes for a UDP packet that arrives on in.
func chosen(t *testing.T, n *Namespace, in string, src, dst netip.Addr, sport uint16) string {
	t.Helper()
	const raIPProto, raSport, raDport = 27, 28, 29 // RTA_IP_PROTO, RTA_SPORT, RTA_DPORT
	var b batch
	b.begin(unix.RTM_GETROUTE, 0, func() string { return "get route" })
	b.buf = append(b.buf, unix.AF_INET, 32, 32, 0, 0, 0, 0, 0)
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
		want["ipv4/fib_multipath_hash_policy"] = "1"
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
