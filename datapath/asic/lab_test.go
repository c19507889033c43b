package asic

import (
	"fmt"
	"testing"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

const (
	ns  = loop.Duration(1)
	us  = 1000 * ns
	ms  = 1000 * us
	gig = uint64(1e9)
)

// sent is a frame that left a port.
type sent struct {
	at    loop.Time
	port  int
	kind  roce.Kind
	len   int32
	dst   uint32
	flow  uint32
	psn   roce.PSN
	tc    uint8
	ttl   uint8
	pfc   roce.PFC
	bytes []byte
}

// bench is one switch whose wires end in a list of what was sent.
//
//	h0 ── 0 ┌────────┐ 1 ── h1
//	h2 ── 2 │ switch │ 3 ── h3 …      port i leads to destination i; destination 1000 goes over all ports of a set
//	        └────────┘
type bench struct {
	*Switch
	t      testing.TB
	clock  *loop.Virtual
	pool   *link.Pool
	sent   []sent
	onSend func(port int, f *link.Frame, at loop.Time)
	quiet  bool
	in     uint64 // frames given to the switch
	out    uint64 // frames that left, pause frames apart
}

// tap is the wire of one port of a bench.
type tap struct {
	b    *bench
	port int
}

func (w *tap) Send(f *link.Frame, at loop.Time) {
	b := w.b
	if at < b.clock.Now() {
		b.t.Fatalf("port %d: a frame's last bit left at %v, before now %v", w.port, at, b.clock.Now())
	}
	if f.Kind != roce.KindPFC && f.Kind != roce.KindPause {
		b.out++
	}
	if !b.quiet {
		b.sent = append(b.sent, sent{at, w.port, f.Kind, f.Len, f.Dst, f.Flow, f.Packet.BTH.PSN, f.TrafficClass, f.TTL, f.PFC, append([]byte(nil), f.Bytes...)})
	}
	if b.onSend != nil {
		b.onSend(w.port, f, at)
	}
	b.pool.Put(f)
}

const (
	spread0 = 1000 // destination that is reached over all ports from 1 on
	selfNo  = 2000 // the fabric's number of the switch's port 0
)

// newBench makes a switch of n ports at a rate. tune changes its configuration first.
func newBench(t testing.TB, n int, rate uint64, tune func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, clock: loop.NewVirtual(us), pool: new(link.Pool)}
	c := Config{Name: "sw", Loop: b.clock.Node(1), Seed: 7, Frames: b.pool, Settings: DefaultSettings()}
	c.Settings.Watchdog.Detect = 0
	var many []int
	for i := range n {
		c.Ports = append(c.Ports, PortConfig{
			Name: fmt.Sprintf("eth%d", i), Number: selfNo + uint32(i), MAC: roce.MAC{2, 0, 0, 0, 1, byte(i)}, PeerMAC: roce.MAC{2, 0, 0, 0, 2, byte(i)},
			Addr: roce.Addr4([4]byte{10, 0, byte(i), 0}), Rate: rate, Delay: us, Wire: &tap{b, i},
		})
		c.Routes.To(uint32(i), c.Routes.AddSet(i))
		if i > 0 {
			many = append(many, i)
		}
	}
	c.Routes.To(spread0, c.Routes.AddSet(many...))
	if tune != nil {
		tune(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	b.Switch = s
	return b
}

// frame makes a RoCE frame in struct form.
func (b *bench) frame(dst uint32, dscp uint8, n int32) *link.Frame {
	f := b.pool.Get()
	f.Kind, f.Len, f.Dst, f.TTL = roce.KindRoCE, n, dst, 64
	f.TrafficClass = roce.TrafficClass(dscp, roce.ECT0)
	return f
}

// give hands the switch a frame at a port now.
func (b *bench) give(port int, f *link.Frame) {
	f.Port = uint16(port)
	if f.Kind != roce.KindPFC && f.Kind != roce.KindPause {
		b.in++
	}
	b.Receive(f)
}

// pfc is a pause frame for one priority.
func (b *bench) pfc(priority uint8, quanta uint16) *link.Frame {
	f := b.pool.Get()
	f.Kind, f.Len, f.Dst = roce.KindPFC, roce.MinFrameLen, link.NoDst
	f.PFC = roce.PFC{}
	f.PFC.Set(priority, quanta)
	return f
}

// at runs fn on the switch's loop at a time.
func (b *bench) at(t loop.Duration, fn func()) {
	b.config0().Arm(&loop.Timer{Fire: fn}, loop.Time(t))
}

// soon runs fn on the switch's loop after what is being done.
func (b *bench) soon(fn func()) { b.config0().Arm(&loop.Timer{Fire: fn}, b.clock.Now()) }

func (b *bench) config0() loop.Loop { return b.Switch.loop }

func (b *bench) run(until loop.Duration) { b.clock.RunUntil(loop.Time(until)) }

// accounts checks that frames and bytes are conserved, and that the memory's sums are those of its accounts.
func (b *bench) accounts() {
	b.t.Helper()
	var held, dropped uint64
	var queued, groups, used int64
	m := &b.Switch.memory
	for i := range b.ports {
		p := &b.ports[i]
		for _, d := range p.drops {
			dropped += d
		}
		var q int64
		for k := range p.queues {
			qu, g := &p.queues[k], &p.groups[k]
			held += uint64(qu.frames.Len())
			q += qu.frames.Bytes()
			groups += g.held + g.head + g.lossy
			used += beyond(qu.lossy, p.table.queues[k].reserved) + beyond(g.held, p.table.groups[k].reserved)
			if g.held < 0 || g.head < 0 || g.lossy < 0 || qu.lossy < 0 {
				b.t.Fatalf("port %d, %d: an account is below 0: %+v, lossy %d", i, k, g, qu.lossy)
			}
			if (qu.frames.Len() > 0) != (p.waiting&(1<<k) != 0) {
				b.t.Fatalf("port %d: %d frames wait in queue %d, but waiting is %08b", i, qu.frames.Len(), k, p.waiting)
			}
		}
		if now := b.clock.Now(); p.waiting&^p.shut(now) != 0 && p.wake > max(p.line.Free(), now) {
			b.t.Fatalf("%v: port %d sleeps until %v, though queues %08b may send from %v on", now, i, p.wake, p.waiting&^p.shut(now), p.line.Free())
		}
		if q != p.queued {
			b.t.Fatalf("port %d: queues hold %d bytes, its sum says %d", i, q, p.queued)
		}
		queued += q
	}
	if queued != m.total || groups != m.total || used != m.used {
		b.t.Fatalf("bytes: queues %d, groups %d, sum %d; shared: accounts %d, sum %d", queued, groups, m.total, used, m.used)
	}
	for _, p := range m.paused {
		if level := m.resumeLevel(p.port, p.group); p.port.groups[p.group].xoff && level >= m.used {
			b.t.Fatalf("%v: port %d group %d may resume with %d in use, up to %d, and wasn't told", b.clock.Now(), p.port.index, p.group, m.used, level)
		}
	}
	if got := b.out + dropped + held + b.consumed; b.in+b.originated != got {
		b.t.Fatalf("frames: %d came and %d were made, but out %d + dropped %d + held %d + consumed %d = %d", b.in, b.originated, b.out, dropped, held, b.consumed, got)
	}
}
