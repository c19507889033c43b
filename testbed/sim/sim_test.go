package sim

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
	"github.com/rocebed/rocebed/workloads"
)

func TestMain(m *testing.M) { testleak.Main(m) }

// build makes a fabric of the two sections of a scenario that say what it is.
func build(t *testing.T, text string) *Fabric {
	t.Helper()
	f, err := tryBuild(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func tryBuild(t *testing.T, text string) (*Fabric, error) {
	t.Helper()
	var file struct {
		Topology topo.Spec             `yaml:"topology"`
		NICs     fabric.NICSettings    `yaml:"nics"`
		Switches fabric.SwitchSettings `yaml:"switches"`
	}
	if err := strict.Decode("fabric", []byte(text), &file); err != nil {
		t.Fatal(err)
	}
	top, err := file.Topology.Build()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := top.Plan(file.Topology.PlanOptions())
	if err != nil {
		t.Fatal(err)
	}
	return Build(t.Context(), Config{Plan: plan, Settings: fabric.Settings{NICs: file.NICs, Switches: file.Switches}, Seed: 1})
}

// play runs workloads to their end.
func play(t *testing.T, f *Fabric, specs string) []*workloads.Result {
	t.Helper()
	var file struct {
		Workloads []workloads.Spec `yaml:"workloads"`
	}
	if err := strict.Decode("workloads", []byte("workloads:\n"+specs), &file); err != nil {
		t.Fatal(err)
	}
	cfg := workloads.Config{Topology: f.Topology(), Seed: 1, LookAhead: f.LookAhead()}
	for _, h := range f.Hosts() {
		for _, n := range h.NICs() {
			cfg.NICs = append(cfg.NICs, workloads.NIC{Port: n.Port, Rail: n.Rail, Device: n.Device, GIDIndex: n.GIDIndex, GID: n.GID})
		}
	}
	e, err := workloads.NewEngine(cfg, file.Workloads)
	if err != nil {
		t.Fatal(err)
	}
	var report *workloads.Report
	e.Start(func(r *workloads.Report) { report = r })
	for report == nil {
		next, ok := f.Next()
		if !ok {
			t.Fatalf("nothing is left to happen at %v", f.Now())
		}
		f.Drive(next)
	}
	if !report.Passed() {
		t.Fatalf("%v, %+v", report.Err, report.Results)
	}
	return report.Results
}

// pcap is a sink that keeps packets and writes them to a file.
type pcap struct {
	name   string
	w      *pcapgo.NgWriter
	file   *os.File
	at     []loop.Time
	frames [][]byte
}

func newPcap(t *testing.T, name string) *pcap {
	t.Helper()
	p := &pcap{name: filepath.Join(t.TempDir(), name)}
	var err error
	if p.file, err = os.Create(p.name); err != nil {
		t.Fatal(err)
	}
	if p.w, err = pcapgo.NewNgWriter(p.file, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *pcap) Packet(at loop.Time, data []byte, length int) error {
	p.at = append(p.at, at)
	p.frames = append(p.frames, append([]byte(nil), data...))
	return p.w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(0, int64(at)), CaptureLength: len(data), Length: length}, data)
}

func TestACaptureIsWhatALinkWouldCarryAndTsharkReadsAllOfIt(t *testing.T) {
	f := build(t, `
topology: {spine-leaf: {spines: 1, leaves: 2, hosts_per_leaf: 3}, rate: 25Gbps}
switches: {memory: 2MiB, pfc: {priorities: [3], xoff: 20KB}, ecn: {kmin: 10KB, kmax: 50KB, pmax: 50%}}
nics: {dcqcn: paper}
`)
	ports := []topo.PortRef{{Node: "h1", Port: "eth0"}, {Node: "leaf2", Port: "eth3"}}
	var taken []*pcap
	var stops []func() (uint64, uint64, error)
	for _, p := range ports {
		sink := newPcap(t, p.Node+".pcapng")
		stop, err := f.Capture(t.Context(), p, sink)
		if err != nil {
			t.Fatal(err)
		}
		taken, stops = append(taken, sink), append(stops, stop)
	}
	if _, err := f.Capture(t.Context(), ports[0], taken[0]); err == nil {
		t.Error("two captures at one port")
	}
	play(t, f, `
- {name: in, kind: incast, from: ["h[3456]"], to: [h1], size: 64KiB, messages: 10, depth: 8}
- {name: r, kind: read, from: [h1], to: [h4], size: 10001B, messages: 3}
- {name: a, kind: atomic, from: [h2], to: [h1], messages: 5}
- {name: d, kind: send, transport: ud, from: [h2], to: [h6], messages: 5}
`)
	for i, p := range ports {
		given, missed, err := stops[i]()
		if err != nil || missed > 0 || int(given) != len(taken[i].frames) || given == 0 {
			t.Fatalf("%v: given %d, missed %d, %v", p, given, missed, err)
		}
		checkCapture(t, f, p, taken[i])
	}
}

func checkCapture(t *testing.T, f *Fabric, ref topo.PortRef, p *pcap) {
	t.Helper()
	port, _ := f.Plan().Port(ref)
	pauses, hops := 0, map[uint8]bool{}
	for i, b := range p.frames {
		if i > 0 && p.at[i] < p.at[i-1] {
			t.Fatalf("%v: packet %d is at %v, the one before it at %v", ref, i, p.at[i], p.at[i-1])
		}
		var v roce.View
		if err := v.Parse(b); err != nil {
			t.Fatalf("%v: packet %d: %v", ref, i, err)
		}
		src, dst := topo.MAC(v.Ethernet().Src), topo.MAC(v.Ethernet().Dst)
		if v.Kind() == roce.KindPFC {
			pauses++
			if src != port.MAC && src != port.PeerMAC {
				t.Fatalf("%v: a pause from %v", ref, src)
			}
			continue
		}
		if v.Kind() != roce.KindRoCE || !v.ICRCOK() || !v.IPv4OK() {
			t.Fatalf("%v: packet %d is of kind %v, ICRC right %v, checksum right %v", ref, i, v.Kind(), v.ICRCOK(), v.IPv4OK())
		}
		if (src != port.MAC || dst != port.PeerMAC) && (src != port.PeerMAC || dst != port.MAC) {
			t.Fatalf("%v: packet %d goes from %v to %v, the link is from %v to %v", ref, i, src, dst, port.MAC, port.PeerMAC)
		}
		hops[64-v.TTL()] = true
	}
	if pauses == 0 && ref.Node == "leaf2" { // whose hosts crowd out of the spine's way
		t.Errorf("%v: no pause frame was seen", ref)
	}
	if want := map[string]map[uint8]bool{"h1": {0: true, 1: true, 3: true}, "leaf2": {1: true, 2: true}}[ref.Node]; fmt.Sprint(hops) != fmt.Sprint(want) {
		t.Errorf("%v: packets have come over %v switches, want %v", ref, hops, want)
	}
	if err := p.w.Flush(); err != nil {
		t.Fatal(err)
	}
	p.file.Close()
	program, err := exec.LookPath("tshark")
	if err != nil {
		t.Fatalf("tshark is what reads the captures here, and it isn't there (`make setup` installs it): %v", err)
	}
	out, err := exec.Command(program, "-n", "-r", p.name, "-o", "ip.check_checksum:TRUE", "-Y", "_ws.malformed || ip.checksum.status == 0").CombinedOutput()
	if err != nil || strings.Contains(string(out), "RRoCE") {
		t.Errorf("%v: tshark: %v\n%s", ref, err, out)
	}
}

func TestAHostsNICsShareItsLoopAndReachEachOtherOverTheFabric(t *testing.T) {
	f := build(t, "topology: {rail-optimised: {rails: 2, groups: 1, hosts_per_group: 2, spines: 1}, rate: 25Gbps}")
	h := f.Host("h1")
	if h == nil || len(h.NICs()) != 2 || h.NICs()[0].Device.Loop() != h.NICs()[1].Device.Loop() || h.NICs()[1].Rail != 1 {
		t.Fatalf("%+v", h.NICs())
	}
	play(t, f, `
- {name: same, kind: write, from: ["h1:eth0"], to: ["h2:eth0"], messages: 4}
- {name: across, kind: write, from: ["h1:eth0"], to: ["h2:eth1"], messages: 4}
`)
}

func TestALinkWithoutDelayTakesANanosecondAndIsWarnedOf(t *testing.T) {
	f := build(t, "topology: {star: {hosts: 2}, rate: 25Gbps, delay: 0s}")
	if f.LookAhead() != time.Nanosecond || len(f.Warnings()) != 1 {
		t.Errorf("look-ahead %v, warnings %q", f.LookAhead(), f.Warnings())
	}
	play(t, f, "- {name: w, kind: write, from: [h1], to: [h2], messages: 4}\n")
}

// Where a run is to be compared with one in real time, DCQCN's least rate is what can be paced there.
func TestTheLeastRateIsThatOfTheDilationThatIsNamed(t *testing.T) {
	f := build(t, "topology: {star: {hosts: 2}, rate: 10Gbps}\nnics: {dcqcn: paper}")
	if w := f.Warnings(); len(w) > 0 {
		t.Errorf("without a dilation: %q", w)
	}
	cfg := f.cfg
	cfg.Dilation = 1024
	f, err := Build(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if w := f.Warnings(); len(w) != 1 || !strings.Contains(w[0], "rpg_min_rate of 1Mbps is") {
		t.Errorf("at a dilation of 1024: %q", w)
	}
}

func TestNodesOfTheKernelAreRefused(t *testing.T) {
	_, err := tryBuild(t, "topology: {star: {hosts: 2}, hosts: {kind: rxe-host}}")
	if err == nil || !strings.Contains(err.Error(), "makes no rxe-host") || !strings.Contains(err.Error(), "kernel backend does") {
		t.Errorf("%v", err)
	}
}

func TestABuildThatIsBrokenOffSaysSo(t *testing.T) {
	f := build(t, "topology: {star: {hosts: 2}}")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Build(ctx, f.cfg); err != context.Canceled {
		t.Errorf("%v", err)
	}
}

func TestHostsStayWithTheirSwitchAndEveryPartitionHasNodes(t *testing.T) {
	top, err := (&topo.Spec{FatTree: &topo.FatTree{K: 8}}).Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{1, 2, 3, 8} {
		l := newLayout(top, workers)
		place, nodes := map[string]int{}, make([]int, l.parts)
		for i := range top.Nodes {
			place[top.Nodes[i].Name] = l.partition(nodeNumber(i))
			nodes[place[top.Nodes[i].Name]]++
		}
		for i := range top.Links {
			a, b := top.Links[i].A.Node, top.Links[i].B.Node
			if (top.Node(a).Role == topo.Host || top.Node(b).Role == topo.Host) && place[a] != place[b] {
				t.Fatalf("%d workers: %s is in partition %d, %s in %d", workers, a, place[a], b, place[b])
			}
		}
		for p, n := range nodes {
			if n < len(top.Nodes)/l.parts/2 {
				t.Errorf("%d workers: partition %d has %d of %d nodes", workers, p, n, len(top.Nodes))
			}
		}
	}
}
