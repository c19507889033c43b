package asic

import (
	"math/rand/v2"
	"testing"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// world is a switch with a host at each port, at the end of a link with a delay. Hosts send frames of random
// sizes, priorities and destinations as fast as the line and the switch's pauses allow, or with gaps, and
// some pause the switch at random.
type world struct {
	*bench
	rng   *rand.Rand
	hosts []*host
	delay loop.Duration
	stop  bool
	loose bool // the buffer's size changes: it may hold more than it should

	next   map[streamKey]uint32 // what comes next of each stream
	told   [][8]bool            // what each host was told last, by priority
	toldAt [][8]loop.Time
	events int
	drops  map[Reason]int
}

// streamKey is what a switch must not reorder: frames of one priority from one port to another.
type streamKey struct {
	from, to uint32
	priority uint8
}

type host struct {
	w      *world
	port   int
	line   link.Line
	paused link.Paused
	timer  loop.Timer
	gap    loop.Duration // mean time between frames besides the line's; 0: none
	dsts   []uint32
	dscps  []uint8
	sizes  [2]int32
	pause  bool // it pauses the switch at random
	seq    map[streamKey]uint32
	head   *link.Frame // waits for a pause to end
}

func newWorld(t testing.TB, seed uint64, n int, delay loop.Duration, tune func(*Config)) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 99)), delay: delay, next: map[streamKey]uint32{}, drops: map[Reason]int{},
		told: make([][8]bool, n), toldAt: make([][8]loop.Time, n)}
	w.bench = newBench(t, n, 100*gig, func(c *Config) {
		for i := range c.Ports {
			c.Ports[i].Delay = delay
		}
		c.Observer = w
		if tune != nil {
			tune(c)
		}
	})
	w.quiet, w.onSend = true, w.leaves
	for i := range n {
		h := &host{w: w, port: i, line: link.NewLine(w.config[i].Rate), seq: map[streamKey]uint32{}, dscps: []uint8{26}, sizes: [2]int32{64, 9230}}
		h.timer.Fire = h.wake
		w.hosts = append(w.hosts, h)
	}
	return w
}

func (w *world) Dropped(_ loop.Time, _ int, why Reason, _ *link.Frame) { w.drops[why]++ }
func (w *world) Paused(loop.Time, int, *roce.PFC)                      {}
func (w *world) Storm(loop.Time, int, uint8, bool)                     {}

// later runs fn d after now.
func (w *world) later(d loop.Duration, fn func()) {
	w.loop.Arm(&loop.Timer{Fire: fn}, w.clock.Now().Add(d))
}

// leaves looks at what the switch sends.
func (w *world) leaves(port int, f *link.Frame, at loop.Time) {
	if f.Kind == roce.KindPFC {
		w.checkPause(port, &f.PFC)
		pfc := f.PFC
		w.later(at.Sub(w.clock.Now())+w.delay, func() { w.hosts[port].hear(&pfc) })
		return
	}
	k := streamKey{f.Flow, uint32(port), f.Priority}
	if psn := uint32(f.Packet.BTH.PSN); psn < w.next[k] {
		w.t.Fatalf("port %d: frame %d of stream %+v left after frame %d", port, psn, k, w.next[k]-1)
	} else {
		w.next[k] = psn + 1
	}
}

// checkPause holds that XOFF and XON of a priority alternate, and that a pause is repeated only in time.
func (w *world) checkPause(port int, f *roce.PFC) {
	now := w.clock.Now()
	for i := range 8 {
		if f.Enabled&(1<<i) == 0 {
			continue
		}
		xoff := f.Quanta[i] > 0
		if !xoff && !w.told[port][i] {
			w.t.Fatalf("%v: port %d ends a pause of priority %d that isn't", now, port, i)
		}
		w.told[port][i], w.toldAt[port][i] = xoff, now
	}
}

func (h *host) start() { h.w.loop.Arm(&h.timer, h.w.clock.Now()) }

// wake sends a frame if one may go.
func (h *host) wake() {
	w, now := h.w, h.w.clock.Now()
	w.events++
	if w.stop && h.head == nil {
		return
	}
	if h.pause && w.rng.IntN(20) == 0 {
		q := uint16(0)
		if w.rng.IntN(3) > 0 {
			q = uint16(w.rng.IntN(2000))
		}
		prio := uint8(w.rng.IntN(8))
		w.later(w.delay, func() { w.give(h.port, w.pfc(prio, q)) })
	}
	if free := h.line.Free(); free > now {
		w.loop.Arm(&h.timer, free)
		return
	}
	f := h.head
	if f == nil {
		f = h.make()
	}
	prio := w.settings.Port.DSCP.Of(f.TrafficClass)
	if until := h.paused.Until(prio); until > now {
		h.head = f
		w.loop.Arm(&h.timer, until)
		return
	}
	h.head = nil
	at := h.line.Send(now, f.Len)
	w.later(at.Sub(now)+w.delay, func() { w.give(h.port, f) })
	if h.gap > 0 {
		at = at.Add(loop.Duration(w.rng.Int64N(int64(2 * h.gap))))
	}
	w.loop.Arm(&h.timer, at)
}

func (h *host) make() *link.Frame {
	w := h.w
	dst := h.dsts[w.rng.IntN(len(h.dsts))]
	n := h.sizes[0] + w.rng.Int32N(h.sizes[1]-h.sizes[0]+1)
	f := w.frame(dst, h.dscps[w.rng.IntN(len(h.dscps))], n)
	f.Flow = uint32(h.port)
	k := streamKey{f.Flow, dst, w.settings.Port.DSCP.Of(f.TrafficClass)}
	f.Packet.BTH.PSN = roce.PSN(h.seq[k])
	h.seq[k]++
	return f
}

func (h *host) hear(f *roce.PFC) {
	now := h.w.clock.Now()
	h.paused.Take(now, h.line.Rate(), f)
	if h.head != nil && !h.paused.Holds(now, h.w.settings.Port.DSCP.Of(h.head.TrafficClass)) {
		h.w.loop.Arm(&h.timer, max(now, h.line.Free()))
	}
}

// drain stops the hosts, ends all pauses, and checks that nothing is left anywhere.
func (w *world) drain() {
	w.t.Helper()
	w.stop = true
	w.clock.RunUntil(w.clock.Now().Add(5 * ms))
	for i := range w.hosts {
		w.hosts[i].pause = false
		for prio := range uint8(8) {
			w.give(i, w.pfc(prio, 0))
		}
	}
	w.clock.RunUntil(w.clock.Now().Add(50 * ms))
	w.accounts()
	if m := w.Memory(); m.Total != 0 || m.Used != 0 {
		w.t.Fatalf("after draining: %+v", m)
	}
	if len(w.memory.paused) != 0 {
		w.t.Fatalf("after draining %d groups still pause their peers", len(w.memory.paused))
	}
	for i, p := range w.told {
		if p != [8]bool{} {
			w.t.Fatalf("after draining port %d keeps its peer paused: %v", i, p)
		}
	}
	if w.in != w.out+sum(w.drops) {
		w.t.Fatalf("%d frames came, %d left, %v dropped", w.in, w.out, w.drops)
	}
	if idle := uint64(w.pool.Idle()); idle != w.pool.Made() {
		w.t.Fatalf("%d frames were made, %d came back", w.pool.Made(), idle)
	}
}

func sum(m map[Reason]int) (n uint64) {
	for _, v := range m {
		n += uint64(v)
	}
	return n
}

// play runs the world and checks its accounts often.
func (w *world) play(until loop.Duration) {
	for i := range w.hosts {
		if len(w.hosts[i].dsts) > 0 {
			w.hosts[i].start()
		}
	}
	for t := loop.Time(0); t < loop.Time(until); t += 1000 {
		w.clock.RunUntil(t)
		w.accounts()
		if m := w.Memory(); !w.loose && (m.Total > int64(w.settings.Buffer) || m.Used > m.Shared) {
			w.t.Fatalf("%v: %+v of a buffer of %v", t, m, w.settings.Buffer)
		}
	}
}

// randomWorld is one where everything may happen.
func randomWorld(t testing.TB, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	n := 2 + rng.IntN(6)
	delay := loop.Duration(rng.Int64N(5000)) + 1
	w := newWorld(t, seed, n, delay, func(c *Config) {
		p := &c.Settings.Port
		for i := range p.Queues {
			q := &p.Queues[i]
			q.Weight = rng.IntN(4)
			q.Reserved = dcqcn.Bytes(rng.IntN(3) * 10000)
			q.Alpha = 8 * AlphaUnit >> rng.IntN(8)
			if rng.IntN(2) == 0 {
				q.ECN = &dcqcn.Marking{Kmin: dcqcn.Bytes(rng.IntN(50000)), Kmax: 100000, Pmax: 0.3}
			}
			p.QueueOf[i], p.GroupOf[i] = uint8(rng.IntN(8)), uint8(rng.IntN(8))
			g := &p.Groups[i]
			*g = Group{Lossless: rng.IntN(2) == 0, Reserved: dcqcn.Bytes(rng.IntN(3) * 10000), XOFF: dcqcn.Bytes(1 + rng.IntN(100000)), XONOffset: dcqcn.Bytes(rng.IntN(30000)), AutoHeadroom: true}
			if rng.IntN(2) == 0 {
				g.Alpha = AlphaUnit >> rng.IntN(7)
			}
		}
		p.PFC.Send, p.PFC.Obey = 0xff, 0xff
		p.PFC.Quanta = uint16(100 + rng.IntN(65000))
		c.Settings.Buffer = dcqcn.Bytes(c.Settings.setAside(c.Ports)) + dcqcn.Bytes(rng.IntN(2_000_000))
	})
	for i, h := range w.hosts {
		h.pause = rng.IntN(3) == 0
		if rng.IntN(2) == 0 {
			h.gap = loop.Duration(1 + rng.IntN(3000))
		}
		h.dscps = []uint8{0, 8, 16, 26, 32, 40, 48, 56}[rng.IntN(8):]
		for range 1 + rng.IntN(n) {
			if d := uint32(rng.IntN(n)); d != uint32(i) {
				h.dsts = append(h.dsts, d)
			}
		}
	}
	return w
}

// lossless says that no frame of a lossless group was dropped.
func (w *world) lossless() {
	w.t.Helper()
	for i := range w.ports {
		for g := range w.ports[i].groups {
			if n := w.ports[i].groups[g].headroomDrops; n > 0 {
				w.t.Errorf("port %d group %d: %d frames found the headroom full (most %d of %d)", i, g, n, w.ports[i].groups[g].headHigh, w.ports[i].table.groups[g].headroom)
			}
		}
	}
}

func TestWhateverHappensNothingIsLostUncountedOrReorderedAndLosslessTrafficIsNotDropped(t *testing.T) {
	for seed := range uint64(60) {
		w := randomWorld(t, seed)
		w.play(300 * us)
		w.drain()
		w.lossless()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzASwitchKeepsItsAccounts(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := randomWorld(t, seed)
		w.play(100 * us)
		w.drain()
		w.lossless()
	})
}
