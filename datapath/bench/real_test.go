package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/asic"
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// The real fabric is the software RNIC and the software switch on the same wires. Each host WRITEs
// flows of 2 MB to another, one after the other, by the verbs that workloads use; the receiver checks
// each. Memory is phantom: of every byte it is known which one it is.

const (
	flowSize = 2 << 20
	pathMTU  = 4096
	ackEvery = 4
	lossless = 26<<2 | 2 // DSCP 26, ECT(0)
)

type realHost struct {
	tb      testing.TB
	index   int
	dev     *rnic.Device
	pd      verbs.PD
	cq      verbs.CQ
	src     verbs.PhantomMemory // what it sends
	srcMR   verbs.MR
	dst     verbs.PhantomMemory // where it is sent to
	dstMR   verbs.MR
	out     verbs.QP // to remote
	in      verbs.QP // from who sends here
	remote  *realHost
	sender  int // the index of who sends here
	wcs     [16]verbs.WC
	sgl     [1]verbs.SGE
	started uint64 // flows
	done    uint64
	checked uint64
	stop    bool // no more flows
}

type realFabric struct {
	*fabric
	at       []*realHost
	switches []*asic.Switch
	from     []int // the nodes that those are
}

// newRealFabric builds it of RNICs of a profile, but that they ask for an ACK every fourth packet.
func newRealFabric(tb testing.TB, plan *topo.Plan, profile string, opts ...loop.Option) *realFabric {
	tb.Helper()
	r := &realFabric{fabric: newFabric(plan, opts...)}
	prof, err := rnic.ProfileNamed(profile)
	if err != nil {
		tb.Fatal(err)
	}
	prof.AckRequestEvery = ackEvery
	numbers := map[roce.Addr]rnic.Neighbor{}
	for i := range plan.PortCount() {
		p := plan.PortAt(i)
		numbers[roce.AddrFrom(p.Addr.Addr())] = rnic.Neighbor{MAC: roce.MAC(p.PeerMAC), Dst: uint32(i)}
	}
	at := make([]link.Receiver, len(r.nodes))
	for i := range r.nodes {
		if r.node(i).Role == topo.Host {
			h := r.newHost(tb, i, prof, func(a roce.Addr) (rnic.Neighbor, bool) { n, ok := numbers[a]; return n, ok })
			r.at = append(r.at, h)
			at[i] = h.dev
			continue
		}
		s, err := asic.New(r.switchConfig(i))
		if err != nil {
			tb.Fatal(err)
		}
		r.switches, r.from = append(r.switches, s), append(r.from, i)
		at[i] = s
	}
	r.connect(at)
	r.open(tb)
	return r
}

func (r *realFabric) switchConfig(i int) asic.Config {
	n := r.node(i)
	seed := uint64(n.HashSeed)
	c := asic.Config{Name: n.Name, Loop: r.nodes[i], Seed: uint64(i), Frames: r.pool(i), Settings: asic.DefaultSettings()}
	c.Settings.Balance.HashSeed = &seed
	for j := range n.Ports {
		number := r.first(i) + j
		p := r.plan.PortAt(number)
		c.Ports = append(c.Ports, asic.PortConfig{
			Name: p.Ref.Port, Number: uint32(number), MAC: roce.MAC(p.MAC), PeerMAC: roce.MAC(p.PeerMAC), Addr: roce.AddrFrom(p.Addr.Addr()),
			Rate: r.rate(i, j), Delay: r.wires[i][j].delay, Wire: &r.wires[i][j],
		})
	}
	for dst, ports := range r.plan.RoutesByPort(n.Name, nil) {
		if len(ports) == 0 {
			continue
		}
		set := make([]int, len(ports))
		for k, p := range ports {
			set[k] = int(p)
		}
		c.Routes.To(uint32(dst), c.Routes.AddSet(set...))
	}
	return c
}

func (r *realFabric) newHost(tb testing.TB, i int, prof rnic.Profile, resolve func(roce.Addr) (rnic.Neighbor, bool)) *realHost {
	p := r.plan.PortAt(r.first(i))
	d, err := rnic.New(rnic.Config{
		Name: r.node(i).Name, Loop: r.nodes[i], MAC: roce.MAC(p.MAC), Addr: roce.AddrFrom(p.Addr.Addr()), MTU: r.plan.Topology.Links[p.Link].MTU,
		Rate: r.rate(i, 0), Seed: uint64(i), Profile: prof,
		Frames: r.pool(i), Wire: &r.wires[i][0], Resolve: resolve, Phantom: true,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return &realHost{tb: tb, dev: d}
}

// open makes all objects, connects the QPs of who sends and who receives, and starts the flows.
func (r *realFabric) open(tb testing.TB) {
	check := func(err error) {
		if err != nil {
			tb.Fatal(err)
		}
	}
	each := func(do func(h *realHost)) {
		for _, h := range r.at {
			do(h)
		}
		r.v.RunUntil(r.v.Now() + 1)
	}
	for i, to := range permutation(len(r.at), 1) {
		r.at[i].index, r.at[i].remote, r.at[to].sender = i, r.at[to], i
	}
	each(func(h *realHost) {
		var err error
		h.src, err = h.dev.AllocPhantom(flowSize, verbs.HostMemory)
		check(err)
		h.dst, err = h.dev.AllocPhantom(flowSize, verbs.HostMemory)
		check(err)
		h.dev.AllocPD(func(p verbs.PD, err error) { check(err); h.pd = p })
		h.dev.CreateCQ(1024, func(verbs.CQ) { h.poll() }, func(c verbs.CQ, err error) { check(err); h.cq = c })
	})
	each(func(h *realHost) {
		init := verbs.QPInit{Type: verbs.RC, SendCQ: h.cq, RecvCQ: h.cq, MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}
		h.pd.RegMR(h.src, 0, flowSize, 0, func(m verbs.MR, err error) { check(err); h.srcMR = m })
		h.pd.RegMR(h.dst, 0, flowSize, verbs.LocalWrite|verbs.RemoteWrite, func(m verbs.MR, err error) { check(err); h.dstMR = m })
		h.pd.CreateQP(init, func(q verbs.QP, err error) { check(err); h.out = q })
		h.pd.CreateQP(init, func(q verbs.QP, err error) { check(err); h.in = q })
	})
	rng := rand.New(rand.NewPCG(1, 1))
	up := func(h, other *realHost, q, far verbs.QP) {
		a := verbs.QPAttr{
			Access: verbs.RemoteWrite, PathMTU: pathMTU, DestQPN: far.Num(), RetryCnt: 7, RNRRetry: 7, Timeout: 14,
			AH: verbs.AHAttr{DGID: other.dev.GIDs()[0], TrafficClass: lossless, FlowLabel: 1 + rng.Uint32N(1<<20-1)},
		}
		modify := func(s verbs.QPState, mask verbs.QPAttrMask) {
			a.State = s
			q.Modify(a, mask|verbs.MaskState, func(err error) { check(err) })
		}
		modify(verbs.Init, verbs.MaskAccess)
		modify(verbs.RTR, verbs.MaskAH|verbs.MaskPathMTU|verbs.MaskDestQPN|verbs.MaskRQPSN|verbs.MaskMaxDestRDAtomic|verbs.MaskMinRNRTimer)
		modify(verbs.RTS, verbs.MaskTimeout|verbs.MaskRetryCnt|verbs.MaskRNRRetry|verbs.MaskSQPSN|verbs.MaskMaxRDAtomic)
	}
	each(func(h *realHost) {
		up(h, h.remote, h.out, h.remote.in)
		up(h.remote, h, h.remote.in, h.out)
	})
	each(func(h *realHost) { h.start() })
}

func (h *realHost) start() {
	for range 2 {
		h.expect()
	}
	h.notify()
	h.flow()
}

func (h *realHost) check(err error) {
	if err != nil {
		h.tb.Error(err)
	}
}

func (h *realHost) notify() { h.check(h.cq.ReqNotify(false)) }
func (h *realHost) expect() { h.check(h.in.PostRecv(verbs.RecvWR{})) }

// stream is what the bytes of a host's flow are called.
func stream(host int, flow uint64) uint64 { return uint64(host+1)<<32 | flow }

// flow posts the next flow.
func (h *realHost) flow() {
	h.src.Stamp(0, flowSize, stream(h.index, h.started), 0)
	h.started++
	h.sgl[0] = verbs.SGE{Addr: h.src.Addr(), Length: flowSize, LKey: h.srcMR.LKey()}
	h.check(h.out.PostSend(verbs.SendWR{
		Op: verbs.OpRDMAWriteWithImm, Flags: verbs.Signaled, SGL: h.sgl[:], RemoteAddr: h.remote.dst.Addr(), RKey: h.remote.dstMR.RKey(),
	}))
}

func (h *realHost) poll() {
	h.notify()
	for _, wc := range h.wcs[:h.cq.Poll(h.wcs[:])] {
		switch {
		case wc.Status != verbs.Success:
			h.tb.Errorf("%s: a flow ended with %v", h.dev.Name(), wc.Status)
		case wc.Op == verbs.WCRecvRDMAWithImm:
			if at := h.dst.Differs(0, flowSize, stream(h.sender, h.checked), 0); at >= 0 {
				h.tb.Errorf("%s: flow %d arrived with something else at byte %d", h.dev.Name(), h.checked, at)
			}
			h.checked++
			h.expect()
		default:
			h.done++
			if !h.stop {
				h.flow()
			}
		}
	}
}

// data counts the packets that carried data and were taken.
func (r *realFabric) data() (n uint64) {
	for _, h := range r.at {
		c := h.dev.Counters()
		n += c.RxPackets - h.acks()
	}
	return n
}

func (h *realHost) acks() uint64 { return h.remote.dev.Counters().AcksSent }

// BenchmarkReal is of the profile with all of the hardware's stages; ideal is without them.
func BenchmarkReal(b *testing.B)  { benchmarkReal(b, "default") }
func BenchmarkIdeal(b *testing.B) { benchmarkReal(b, "ideal") }

func benchmarkReal(b *testing.B, profile string) {
	sizes(b, func(b *testing.B, k int, opts ...loop.Option) {
		f := newRealFabric(b, fatTree(b, k), profile, opts...)
		perCPU := measure(b, f)
		b.ReportMetric(perCPU/bareSpeed(b, k, opts...), "of-bare")
		var again, pauses uint64
		for _, h := range f.at {
			again += h.dev.Counters().RetransmittedPackets
		}
		for i, s := range f.switches {
			for port := range f.wires[f.from[i]] {
				for _, n := range s.Stats(port).TxPause {
					pauses += n
				}
			}
		}
		b.ReportMetric(float64(again), "sent-again")
		b.ReportMetric(float64(pauses), "pauses")
	})
}

// outcome is all that devices and switches have counted, and how far each host is.
func (r *realFabric) outcome() string {
	var s strings.Builder
	for _, h := range r.at {
		fmt.Fprintf(&s, "%s %d %d %+v\n", h.dev.Name(), h.done, h.checked, h.dev.Counters())
	}
	for i, sw := range r.switches {
		fmt.Fprintf(&s, "%s", sw.Name())
		for port := range r.wires[r.from[i]] {
			fmt.Fprintf(&s, " %+v", sw.Stats(port))
		}
		fmt.Fprintln(&s)
	}
	return s.String()
}

func TestAFabricComesToTheSameOnAnyNumberOfWorkers(t *testing.T) {
	plan := fatTree(t, 4)
	run := func(opts ...loop.Option) (string, uint64) {
		f := newRealFabric(t, plan, "default", opts...)
		f.v.RunUntil(loop.Time(time.Millisecond))
		for _, h := range f.at {
			if h.checked == 0 {
				t.Fatalf("no flow to %s has arrived", h.dev.Name())
			}
		}
		return f.outcome(), f.v.Handled()
	}
	want, events := run()
	if events < 50_000 {
		t.Fatalf("only %d events", events)
	}
	for workers := range 5 {
		got, n := run(loop.Workers(1+workers), loop.Partition(pods(4, 1+workers)))
		if got != want || n != events {
			t.Fatalf("%d workers: %d events came to\n%s\none after the other %d came to\n%s", 1+workers, n, got, events, want)
		}
	}
}
