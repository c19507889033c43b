package rnic

import (
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// The limits of a device.
const (
	maxQPs      = 1 << 16
	maxQPWR     = 1 << 15
	maxSGE      = 32
	maxInline   = 1024
	maxCQE      = 1 << 22
	maxKeys     = 1 << 20 // regions and windows
	maxSRQWR    = 1 << 15
	maxRDAtomic = 128
	maxMsg      = 1 << 30
)

// Errors of calls, wrapped with the device and the call.
var (
	ErrClosed  = errors.New("the device is closed")
	ErrDead    = errors.New("the object was destroyed")
	ErrInUse   = errors.New("the object is in use")
	ErrInvalid = errors.New("invalid argument")
	ErrState   = errors.New("the QP's state doesn't allow it")
	ErrFull    = errors.New("the queue is full")
	// ErrUnsupported is what a device, or its peer's, can't do.
	ErrUnsupported = errors.New("not supported")
)

// Device is a software RNIC. It implements verbs.Device and link.Receiver; all calls are made on
// its loop.
type Device struct {
	cfg    Config
	loop   loop.Loop
	frames *link.Pool
	mtu    int // InfiniBand's
	closed bool

	port  port
	hw    pipeline
	cc    congestion
	count Counters

	kept    bool          // the packet at hand stays with a queue pair
	checked loop.Time     // when the packet at hand is through the checks on arrival
	left    loop.Time     // when it leaves the receive buffer
	content []link.Extent // what it carries where there are no bytes

	qps     []*qp // by the lower 16 bits of their numbers
	freeQPs []uint32
	keys    keyTable
	space   uint64    // next free virtual address
	mems    []*memory // by address
	onAsync func(verbs.AsyncEvent)
	faulty  faulty
}

// loopback is the destination of frames to the device itself, which never reach the wire.
const loopback = link.NoDst - 1

// New makes a device whose port is up.
func New(cfg Config) (*Device, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Priorities == nil {
		m := link.DefaultPriorities()
		cfg.Priorities = &m
	}
	if cfg.Profile.Recovery == "" {
		cfg.Profile.Recovery = GoBackN
	}
	d := &Device{cfg: cfg, loop: cfg.Loop, frames: cfg.Frames, mtu: ibMTU(cfg.MTU), space: firstAddr}
	d.keys.seed = cfg.Seed
	if err := cfg.Profile.Validate(); err != nil {
		return nil, fmt.Errorf("%s: new RNIC: %w", cfg.Name, err)
	}
	if err := d.hw.init(&d.cfg); err != nil {
		return nil, fmt.Errorf("%s: new RNIC: %w", cfg.Name, err)
	}
	if err := d.cc.init(&d.cfg); err != nil {
		return nil, fmt.Errorf("%s: new RNIC: DCQCN: %w", cfg.Name, err)
	}
	d.port.init(d)
	return d, nil
}

// Name implements verbs.Device.
func (d *Device) Name() string { return d.cfg.Name }

// Loop implements verbs.Device.
func (d *Device) Loop() loop.Loop { return d.loop }

// Counters are the device's so far.
func (d *Device) Counters() Counters {
	c := d.count
	now := d.loop.Now()
	for i := range c.Priority {
		p := &c.Priority[i]
		p.TxPause = d.port.in.pauser.Frames[i] + d.port.storm.count[i]
		p.RxPauseTime = uint64(d.port.paused.Time(now, uint8(i)))
		p.TxPauseTime = uint64(d.port.in.pauser.Time(now, uint8(i)) + d.port.storm.time(now, uint8(i)))
	}
	c.MTTHits, c.MTTMisses = d.faulty.carried.hits, d.faulty.carried.misses
	if t := d.hw.mtt; t != nil {
		c.MTTHits, c.MTTMisses = c.MTTHits+t.hits, c.MTTMisses+t.misses
	}
	if t := d.hw.iommu; t != nil {
		c.IOMMUHits, c.IOMMUMisses = t.hits, t.misses
	}
	return c
}

// Attr implements verbs.Device.
func (d *Device) Attr() verbs.DeviceAttr {
	return verbs.DeviceAttr{
		MaxQP: maxQPs - firstQPN, MaxQPWR: maxQPWR, MaxSGE: maxSGE, MaxCQ: maxQPs, MaxCQE: maxCQE, MaxMR: maxKeys, MaxPD: maxQPs,
		MaxSRQ: maxQPs, MaxSRQWR: maxSRQWR, MaxSRQSGE: maxSGE, MaxQPRDAtomic: maxRDAtomic, MaxQPInitRDAtomic: maxRDAtomic,
		MaxMW: maxKeys, MaxAH: maxKeys, MWType1: true, MWType2: true, Atomics: true, FirmwareVersion: "rocebed",
	}
}

// Port implements verbs.Device.
func (d *Device) Port() verbs.PortAttr {
	return verbs.PortAttr{Active: !d.port.down, ActiveMTU: d.mtu, MaxMTU: 4096, MaxMsg: maxMsg}
}

// GIDs implements verbs.Device: the port's address is the only one.
func (d *Device) GIDs() []verbs.GID { return []verbs.GID{d.cfg.Addr.Netip()} }

// OnAsync implements verbs.Device.
func (d *Device) OnAsync(fn func(verbs.AsyncEvent)) { d.onAsync = fn }

// SetLink brings the port up or down. A port that is down receives nothing, and what it sends is lost as if it were
// on its way: requesters send again until their retries are used up.
func (d *Device) SetLink(up bool) {
	if d.port.down == !up {
		return
	}
	d.port.setLink(up)
	e := verbs.EventPortErr
	if up {
		e = verbs.EventPortActive
	}
	d.event(verbs.AsyncEvent{Type: e})
}

// Close implements verbs.Device.
func (d *Device) Close(done func(error)) {
	if d.closed {
		d.fails("close", ErrClosed, done)
		return
	}
	d.closed = true
	for _, q := range d.qps {
		if q != nil {
			q.bury()
		}
	}
	d.keys.clear()
	for _, m := range d.mems {
		m.release()
	}
	d.mems = nil
	d.later(func() { done(nil) })
}

// event hands an asynchronous event to the device's owner, once what is at hand is done.
func (d *Device) event(e verbs.AsyncEvent) {
	d.later(func() {
		if d.onAsync != nil && !d.closed {
			d.onAsync(e)
		}
	})
}

// later runs fn once what is at hand is done.
func (d *Device) later(fn func()) { d.loop.Post(fn) }

// fail wraps an error with the device and the call.
func (d *Device) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", d.cfg.Name, op, err)
}

func (d *Device) fails(op string, err error, done func(error)) {
	err = d.fail(op, err)
	d.later(func() { done(err) })
}

// answer completes a call that makes something.
func answer[V any](d *Device, op string, v V, err error, done func(V, error)) {
	err = d.fail(op, err)
	d.later(func() { done(v, err) })
}

// leave gives a frame, whose last bit leaves the port at a time, to the wire.
func (d *Device) leave(f *link.Frame, at loop.Time) {
	if d.port.down {
		d.count.TxDiscards++
		d.frames.Put(f)
		return
	}
	if f.Kind == roce.KindRoCE {
		d.count.TxPackets++
		d.count.TxBytes += uint64(f.Len)
	}
	if f.Dst == loopback {
		f.ArriveAt(d, 0)
		d.loop.Arm(&f.Timer, at)
		return
	}
	d.cfg.Wire.Send(f, at)
}

// Receive implements link.Receiver: a frame has arrived at the port.
func (d *Device) Receive(f *link.Frame) {
	switch {
	case d.port.down || d.closed:
		d.count.StrayPackets++
	case f.Kind != roce.KindRoCE:
		d.port.receive(f)
	default:
		d.take(f)
	}
	if d.kept {
		d.kept = false
		return
	}
	d.frames.Put(f)
}

// take is a RoCE packet's way through the receive buffer. State machines act on it at once; what comes of that is
// visible when the stages are through with it.
func (d *Device) take(f *link.Frame) {
	now := d.loop.Now()
	n, priority := f.Len, d.cfg.Priorities.Of(f.TrafficClass)
	if !d.port.in.admit(now, n, priority) {
		return
	}
	c := &d.count.Priority[priority]
	c.RxPackets++
	c.RxBytes += uint64(n)
	d.checked = d.hw.receive(now)
	d.left, d.content = d.checked, f.Content
	d.receive(f)
	d.port.in.hold(d.left, n, priority)
}

func (d *Device) receive(f *link.Frame) {
	p := &f.Packet
	if f.Bytes != nil {
		if !f.View.ICRCOK() {
			d.count.RxICRCEncapsulated++
			return
		}
		if p.Decode(&f.View) != nil {
			d.count.StrayPackets++
			return
		}
	} else if f.Damaged {
		d.count.RxICRCEncapsulated++
		return
	}
	d.count.RxPackets++
	d.count.RxBytes += uint64(f.Len)
	if p.Dst != d.cfg.Addr {
		d.count.StrayPackets++
		return
	}
	if p.BTH.Opcode == roce.CNP {
		d.notified(f)
		return
	}
	if q := d.find(p.BTH.DestQP); q != nil {
		if d.hw.trace != nil {
			q.traced(f)
		} else {
			q.receive(f)
		}
		return
	}
	d.count.StrayPackets++
}

// land is when n bytes of the packet at hand, which was checked at a time, are on their way to an address of a memory
// for good: then they count as written, and what is written behind them comes after them.
func (d *Device) land(at loop.Time, addr uint64, n uint32, kind verbs.MemoryKind) loop.Time {
	at = d.hw.place(at, addr, int(n), kind)
	d.left = max(d.left, at)
	return at
}

// find is the QP with a number, nil when there is none.
func (d *Device) find(num uint32) *qp {
	if i := num & (maxQPs - 1); int(i) < len(d.qps) {
		if q := d.qps[i]; q != nil && q.num == num {
			return q
		}
	}
	return nil
}
