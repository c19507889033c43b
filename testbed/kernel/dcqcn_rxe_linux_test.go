//go:build linux

package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

// incast is a star whose NICs have DCQCN and whose switch marks and, if asked, pauses. Unmodified programs run on it.
//
//	h1 ─┐
//	 …  ├─ leaf1 ── the last host     all links 10 Gb/s
//	hN ─┘
func incast(t *testing.T, senders int, pfc bool) *Fabric {
	cfg := Config{
		Dilation: 512,
		NICs:     fabric.NICSettings{NICModel: fabric.NICModel{DCQCN: &fabric.DCQCNSettings{Profile: "paper"}}},
		Switches: fabric.SwitchSettings{SwitchModel: fabric.SwitchModel{ECN: &fabric.ECNSettings{KMin: 40_000, KMax: 200_000, PMax: 0.1}}},
	}
	if pfc {
		cfg.Switches.PFC = &fabric.PFCSettings{}
	}
	return build(t, star(senders+1, 10*topo.Gbps, time.Microsecond), cfg)
}

// perftest is a perftest client on one host with its server on another.
type perftest struct {
	program, client, server string
	args                    []string
	port                    int
}

// start starts a program on a node.
func (p *perftest) start(t *testing.T, f *Fabric, node string, to string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	env, notes, err := f.ProgramEnv(node)
	if err != nil || len(notes) > 0 {
		t.Fatalf("%q, %v: is the library built (make build)?", notes, err)
	}
	nic := f.hostNamed(t, node).nics[0]
	args := append([]string{"-d", f.DeviceName(nic.Port), "-x", strconv.Itoa(nic.GIDIndex), "-F", "--tclass", "106", "--report_gbits", "-p", strconv.Itoa(p.port)}, p.args...)
	if to != "" {
		plan, _ := f.Plan().Port(topo.PortRef{Node: to, Port: "eth0"})
		args = append(args, plan.Addr.Addr().String())
	}
	c := exec.Command(p.program, args...)
	c.Env = append(os.Environ(), env...)
	out := &bytes.Buffer{}
	c.Stdout, c.Stderr = out, out
	if err := f.wiring.Node(node).Do(c.Start); err != nil {
		t.Fatal(err)
	}
	return c, out
}

// listens waits until a program listens on its port.
func (p *perftest) listens(t *testing.T, c *exec.Cmd) {
	t.Helper()
	want := fmt.Sprintf(":%04X ", p.port)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
		for _, file := range []string{"tcp", "tcp6"} {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", c.Process.Pid, file))
			for _, line := range strings.Split(string(b), "\n") {
				if strings.Contains(line, want) && strings.Contains(line, " 0A ") {
					return
				}
			}
		}
	}
	t.Fatalf("%s on %s doesn't listen on port %d", p.program, p.server, p.port)
}

// gbits is the average that a client reports, Gb/s of wall time.
func gbits(out string) (float64, error) {
	for _, line := range strings.Split(out, "\n") {
		if f := strings.Fields(line); len(f) == 5 {
			if _, err := strconv.Atoi(f[0]); err == nil {
				return strconv.ParseFloat(f[3], 64)
			}
		}
	}
	return 0, errors.New("no result line")
}

// together runs programs at once (perftest measures the middle half of the time that it is given), and says what each carried, in bits a second of fabric time.
func together(t *testing.T, f *Fabric, all []*perftest) (rates []float64) {
	t.Helper()
	var servers, clients []*exec.Cmd
	var outs []*bytes.Buffer
	for _, p := range all {
		c, out := p.start(t, f, p.server, "")
		servers, outs = append(servers, c), append(outs, out)
		p.listens(t, c)
	}
	var said []*bytes.Buffer
	for _, p := range all {
		c, out := p.start(t, f, p.client, p.server)
		clients, said = append(clients, c), append(said, out)
	}
	var wg sync.WaitGroup
	errs := make([]error, len(all))
	for i := range all {
		wg.Go(func() {
			timer := time.AfterFunc(time.Minute, func() { _, _ = clients[i].Process.Kill(), servers[i].Process.Kill() })
			defer timer.Stop()
			errs[i] = errors.Join(clients[i].Wait(), servers[i].Wait())
		})
	}
	wg.Wait()
	for i, p := range all {
		r, err := gbits(said[i].String())
		if err = errors.Join(errs[i], err); err != nil {
			t.Fatalf("%s from %s to %s: %v\n%s\n%s", p.program, p.client, p.server, err, said[i], outs[i])
		}
		rates = append(rates, r*1e9*float64(f.cfg.Dilation.Factor()))
	}
	return rates
}

// wireCount counts RoCE packets that it sees.
type wireCount struct {
	marked, cnps, data uint64
	bytes              uint64 // of frames with data, all but the first
	first, last        loop.Time
}

// rate is what data crossed at, in bits a second of fabric time, between the first packet and the last.
func (c *wireCount) rate() float64 { return float64(c.bytes) * 8 / c.last.Sub(c.first).Seconds() }

// Packet implements fabric.PacketSink, for IPv4.
func (c *wireCount) Packet(at loop.Time, b []byte, length int) error {
	if len(b) < 54 || b[12] != 8 || b[13] != 0 || b[23] != 17 || b[36] != 0x12 || b[37] != 0xb7 {
		return nil
	}
	switch opcode := b[42]; {
	case opcode == 0x81:
		c.cnps++
	case opcode&0x1f == 17: // an acknowledgement
	default:
		if c.data++; c.data == 1 {
			c.first = at
		} else {
			c.bytes += uint64(length)
		}
		c.last = at
		if b[15]&3 == 3 {
			c.marked++
		}
	}
	return nil
}

// watchLimited looks, until the function that it returns is called, which hosts have queue pairs below line rate.
func watchLimited(t *testing.T, f *Fabric, hosts []string) (seen func() map[string]bool) {
	end, ended := make(chan struct{}), make(chan map[string]bool)
	go func() {
		limited := map[string]bool{}
		defer func() { ended <- limited }()
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-end:
				tick.Stop()
				return
			case <-tick.C:
			}
			r, err := f.agent.Read()
			if err != nil {
				t.Error(err)
				continue
			}
			for _, h := range hosts {
				if n := r.Ports[f.numbers[topo.PortRef{Node: h, Port: "eth0"}]].NIC; n.Limited > 0 {
					limited[h] = true
				}
			}
		}
	}()
	seen = sync.OnceValue(func() map[string]bool { close(end); return <-ended })
	t.Cleanup(func() { seen() })
	return seen
}

// counted captures at hosts' ports while work runs.
func counted(t *testing.T, f *Fabric, hosts []string, work func()) map[string]*wireCount {
	t.Helper()
	counts := map[string]*wireCount{}
	var stops []func() (uint64, uint64, error)
	for _, h := range hosts {
		counts[h] = &wireCount{}
		stop, err := f.Capture(context.Background(), topo.PortRef{Node: h, Port: "eth0"}, counts[h])
		if err != nil {
			t.Fatal(err)
		}
		stops = append(stops, stop)
	}
	work()
	for _, stop := range stops {
		if _, missed, err := stop(); err != nil || missed > 0 {
			t.Fatalf("the capture missed %d packets: %v", missed, err)
		}
	}
	return counts
}

// Programs that know nothing of it are told by marks and CNPs to slow down, both who write and, of READs, who respond: they
// share the bottleneck, nothing is dropped at any host, and counters say what was on the wire.
func TestProgramsSlowDownWhereTheirPacketsAreMarked(t *testing.T) {
	for _, c := range []struct {
		program string
		senders int
	}{{"ib_write_bw", 2}, {"ib_write_bw", 4}, {"ib_read_bw", 4}} {
		t.Run(fmt.Sprintf("%s %d to 1", c.program, c.senders), func(t *testing.T) {
			f := incast(t, c.senders, true)
			sink := fmt.Sprintf("h%d", c.senders+1)
			var all []*perftest
			var hosts []string
			for i := range c.senders {
				h := fmt.Sprintf("h%d", i+1)
				p := &perftest{program: c.program, client: h, server: sink, port: 18600 + i, args: []string{"-s", "16384", "-D", "4", "-t", "16", "-Q", "1"}}
				if c.program == "ib_read_bw" { // data flow from the server to who reads
					p.client, p.server = sink, h
				}
				all, hosts = append(all, p), append(hosts, h)
			}
			var rates []float64
			var limited map[string]bool
			counts := counted(t, f, append(hosts, sink), func() {
				seen := watchLimited(t, f, hosts)
				rates = together(t, f, all)
				limited = seen()
			})
			for _, h := range hosts {
				if !limited[h] {
					t.Errorf("no queue pair of %s was seen below line rate", h)
				}
			}
			r := collect(t, f)
			var sent []uint64
			var sum uint64
			for _, h := range hosts {
				sent, sum = append(sent, counts[h].data), sum+counts[h].data
			}
			t.Logf("packets %v at %.3g b/s, reported %.3g; marked %v, CNPs sent %v, xoffs %v", sent, counts[sink].rate(), rates, r.of(t, "np_ecn_marked_roce_packets", sink, "eth0"), r.of(t, "np_cnp_sent", sink, "eth0"),
				r.of(t, "pfc_xoffs", "leaf1", "eth0", "3"))
			// These are 8 ms of fabric time, in which a program that begins before the others has the link to itself: nobody starves. How even shares become is for
			// suites/agreement.
			if least := slices.Min(sent); least*uint64(len(sent)) < sum/2 {
				t.Errorf("the link was shared as %v packets: one had less than half of its fair share", sent)
			}
			// What the programs report is of a few messages at such rates, so the link itself is asked. How full it is once rates have settled is for
			// suites/agreement, too: here nobody is throttled without end.
			carried := counts[sink].rate()
			if err := f.KeepUp(); err != nil {
				t.Logf("the link of 10 Gb/s carried %.3g b/s: %v", carried, err)
			} else if carried < 10e9/3 {
				t.Errorf("the link of 10 Gb/s carried %.3g b/s", carried)
			}
			var handled, heard uint64
			for _, h := range hosts {
				n := uint64(r.of(t, "rp_cnp_handled", h, "eth0"))
				if n == 0 || n != counts[h].cnps {
					t.Errorf("%s handled %d CNPs of %d in a capture", h, n, counts[h].cnps)
				}
				handled += n
				heard += counts[h].cnps
				if n := r.of(t, "roce_unmapped", h, "eth0") + r.of(t, "rp_cnp_ignored", h, "eth0"); n > 0 {
					t.Errorf("%s had %v CNPs for nobody", h, n)
				}
			}
			s := counts[sink]
			if marked, cnps := r.of(t, "np_ecn_marked_roce_packets", sink, "eth0"), r.of(t, "np_cnp_sent", sink, "eth0"); uint64(marked) != s.marked || uint64(cnps) != s.cnps || heard != s.cnps {
				t.Errorf("%s counted %v marked packets and %v CNPs sent; a capture has %d and %d, and %d came", sink, marked, cnps, s.marked, s.cnps, heard)
			}
			if err := f.localDrops(); err != nil {
				t.Error(err)
			}
			for _, h := range append(hosts, sink) {
				for _, name := range []string{"out_of_seq_request", "duplicate_request", "rcvd_seq_err", "completer_retry_err"} {
					if n := r.of(t, name, h, "eth0"); n != 0 {
						t.Errorf("%s: %s is %v", h, name, n)
					}
				}
			}
			for ref, number := range f.numbers {
				p, err := f.engine.Read(number)
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(f.enginePortKept(ref, &p)...); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A queue pair is looked up by its number, and one that was destroyed isn't there.
func TestAQueuePairIsLookedUpByItsNumber(t *testing.T) {
	f := build(t, star(2, topo.Gbps, time.Microsecond), Config{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	h1, h2 := f.hostNamed(t, "h1"), f.hostNamed(t, "h2")
	x, err := newTransfer(ctx, h1, h2, 4096, 1, patient, testRetries)
	if err != nil {
		t.Fatal(err)
	}
	local, remote := x.src.qp.Num(), x.dst.qp.Num()
	q, ok, err := h1.rdma.QP(h1.devs[0].device, local)
	if err != nil || !ok || q.Num != local || q.Remote != remote || q.Type != 2 || q.State != 3 {
		t.Errorf("QP %#x, connected to %#x, is %+v (%v, %v)", local, remote, q, ok, err)
	}
	if err := x.close(ctx); err != nil {
		t.Fatal(err)
	}
	if q, ok, err := h1.rdma.QP(h1.devs[0].device, local); ok || err != nil {
		t.Errorf("destroyed, it is %+v (%v, %v)", q, ok, err)
	}
}
