package rnic

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/workloads/verbs"
)

func TestMain(m *testing.M) { testleak.Main(m) }

// lab is two hosts on a wire each way, in virtual time.
type lab struct {
	v      *loop.Virtual
	frames link.Pool
	wires  [2]*wire // from host 0 and from host 1
	addrs  [2]roce.Addr
	config func(*Config)
	bytes  bool // frames cross as bytes
}

// wire delays frames, loses some and shows them to who looks.
type wire struct {
	lab   *lab
	from  *loop.Node
	to    *loop.Node
	dest  *Device
	delay time.Duration
	lose  float64
	// jitter is what frames may be delayed by besides, at random.
	jitter time.Duration
	rng    *rand.Rand
	tap    func(f *link.Frame) bool                    // false: the frame is lost
	hold   func(f *link.Frame, at loop.Time) loop.Time // when its last bit leaves what is in the way
}

const labDelay = time.Microsecond

func newLab(v6 bool) *lab {
	l := &lab{v: loop.NewVirtual(labDelay)}
	for i := range l.wires {
		l.addrs[i] = roce.Addr4([4]byte{10, 0, 0, byte(1 + i)})
		if v6 {
			l.addrs[i] = roce.Addr{0: 0xfd, 15: byte(1 + i)}
		}
		l.wires[i] = &wire{lab: l, from: l.v.Node(uint32(i)), to: l.v.Node(uint32(1 - i)), delay: labDelay, rng: rand.New(rand.NewPCG(1, uint64(i)))}
	}
	return l
}

// open makes a device of a host. The first one of each is what the wire ends at.
func (l *lab) open(host int) (*Device, error) {
	cfg := Config{
		Name: fmt.Sprintf("h%d", host), Loop: l.wires[host].from, MAC: roce.MAC{2, 5: byte(host)}, Addr: l.addrs[host],
		MTU: 4200, Rate: 100e9, Seed: 7, Profile: Profile{Name: "test", AckRequestEvery: 16}, Frames: &l.frames, Wire: l.wires[host],
		Resolve: func(a roce.Addr) (Neighbor, bool) {
			for i, b := range l.addrs {
				if a == b {
					return Neighbor{MAC: roce.MAC{2, 5: byte(i)}, Dst: uint32(i)}, true
				}
			}
			return Neighbor{}, false
		},
	}
	if l.config != nil {
		l.config(&cfg)
	}
	d, err := New(cfg)
	if err == nil && l.wires[1-host].dest == nil {
		l.wires[1-host].dest = d
	}
	return d, err
}

func (w *wire) Send(f *link.Frame, at loop.Time) {
	if w.lose > 0 && w.rng.Float64() < w.lose || w.tap != nil && !w.tap(f) || w.dest == nil || f.Kind == roce.KindRoCE && f.Dst == link.NoDst {
		w.lab.frames.Put(f)
		return
	}
	if w.hold != nil {
		at = w.hold(f, at)
	}
	if w.lab.bytes {
		f = w.lab.asBytes(f)
	}
	if w.jitter > 0 {
		at = at.Add(time.Duration(w.rng.Int64N(int64(w.jitter))))
	}
	f.ArriveAt(w.dest, 0)
	w.from.Send(w.to, 0, at.Add(w.delay), &f.Timer)
}

// asBytes makes the byte form of a frame.
func (l *lab) asBytes(f *link.Frame) *link.Frame {
	b, err := f.Packet.Append(nil)
	if err != nil || len(b) != int(f.Len) {
		panic(fmt.Sprintf("a frame of %d bytes (%v) makes %d: %v", f.Len, f.Packet.BTH.Opcode, len(b), err))
	}
	g := l.frames.Get()
	g.Kind, g.Len, g.Dst, g.Flow, g.TrafficClass, g.TTL, g.Bytes = f.Kind, f.Len, f.Dst, f.Flow, f.TrafficClass, f.TTL, b
	if err := g.View.Parse(b); err != nil {
		panic(err)
	}
	l.frames.Put(f)
	return g
}

// run lets time pass until done, and fails when nothing is left to happen or it takes too long.
func (l *lab) run(done func() bool) error {
	for start := l.v.Now(); !done(); {
		if !l.v.Step() {
			return fmt.Errorf("nothing is left to happen at %v", l.v.Now())
		}
		if l.v.Now().Sub(start) > time.Hour {
			return fmt.Errorf("nothing came of it from %v to %v", start, l.v.Now())
		}
	}
	return nil
}

// end is a host with a QP, a CQ and a region.
type end struct {
	*Device
	pd  *pd
	cq  *compQueue
	mem *memory
	mr  *mr
	qp  *qp
}

// pairOf connects two QPs of a type at the two hosts. PSNs begin where they soon wrap.
func (l *lab) pairOf(t testing.TB, kind verbs.QPType, size int, change func(host int, init *verbs.QPInit, attr *verbs.QPAttr)) (e [2]*end) {
	t.Helper()
	for i := range e {
		d, err := l.open(i)
		if err != nil {
			t.Fatal(err)
		}
		e[i] = l.endOf(t, d, kind, size, change, i)
	}
	l.connect(t, e, kind, change)
	return e
}

func (l *lab) endOf(t testing.TB, d *Device, kind verbs.QPType, size int, change func(int, *verbs.QPInit, *verbs.QPAttr), host int) *end {
	t.Helper()
	e := &end{Device: d}
	d.AllocPD(func(p verbs.PD, err error) { e.pd = p.(*pd) })
	d.CreateCQ(1<<16, nil, func(c verbs.CQ, err error) { e.cq = c.(*compQueue) })
	m, err := d.AllocMemory(size, verbs.HostMemory)
	if err != nil {
		t.Fatal(err)
	}
	e.mem = m.(*memory)
	l.settle(t, func() bool { return e.pd != nil && e.cq != nil })
	init := verbs.QPInit{Type: kind, SendCQ: e.cq, RecvCQ: e.cq, MaxSendWR: 1024, MaxRecvWR: 1024, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 64}
	if change != nil {
		change(host, &init, &verbs.QPAttr{})
	}
	e.pd.RegMR(m, 0, size, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead|verbs.RemoteAtomic|verbs.MWBind, func(r verbs.MR, err error) { e.mr = r.(*mr) })
	e.pd.CreateQP(init, func(q verbs.QP, err error) {
		if err != nil {
			t.Fatal(err)
		}
		e.qp = q.(*qp)
	})
	l.settle(t, func() bool { return e.mr != nil && e.qp != nil })
	return e
}

// connect brings both QPs to RTS.
func (l *lab) connect(t testing.TB, e [2]*end, kind verbs.QPType, change func(int, *verbs.QPInit, *verbs.QPAttr)) {
	t.Helper()
	for i := range e {
		a := verbs.QPAttr{
			Access: verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic, PathMTU: 1024, DestQPN: e[1-i].qp.num,
			AH: verbs.AHAttr{DGID: l.addrs[1-i].Netip(), TrafficClass: 106}, RQPSN: 0xfffff8 + uint32(1-i), SQPSN: 0xfffff8 + uint32(i),
			MaxRDAtomic: 4, MaxDestRDAtomic: 4, MinRNRTimer: 1, Timeout: 8, RetryCnt: 7, RNRRetry: 7, QKey: 1,
		}
		if change != nil {
			change(i, &verbs.QPInit{}, &a)
		}
		for _, s := range []verbs.QPState{verbs.Init, verbs.RTR, verbs.RTS} {
			a.State = s
			from := e[i].qp.state
			mask := transitions[[2]verbs.QPState{from, s}].needs[kind] | verbs.MaskState
			e[i].qp.Modify(a, mask, func(err error) {
				if err != nil {
					t.Fatal(err)
				}
			})
		}
	}
	l.settle(t, func() bool { return e[0].qp.state == verbs.RTS && e[1].qp.state == verbs.RTS })
}

func (l *lab) settle(t testing.TB, done func() bool) {
	t.Helper()
	if err := l.run(done); err != nil {
		t.Fatal(err)
	}
}

// sge is a piece of the end's region.
func (e *end) sge(off, n int) []verbs.SGE {
	return []verbs.SGE{{Addr: e.mem.addr + uint64(off), Length: uint32(n), LKey: e.mr.was}}
}

// poll takes the completions that are there.
func (e *end) poll() []verbs.WC {
	wcs := make([]verbs.WC, 64)
	return wcs[:e.cq.Poll(wcs)]
}

// await waits for n completions.
func (l *lab) await(t testing.TB, e *end, n int) (wcs []verbs.WC) {
	t.Helper()
	l.settle(t, func() bool { wcs = append(wcs, e.poll()...); return len(wcs) >= n })
	return wcs
}
