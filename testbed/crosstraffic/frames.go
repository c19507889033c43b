package crosstraffic

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
)

// emitter is a device that lets its host's own packets through its port.
type emitter interface {
	Loop() loop.Loop
	Emit(rnic.Datagram) error
}

// The ports that UDP streams come from and go to: those that IANA leaves to anybody (RFC 6335), and discard.
const (
	firstPort   = 0xc000
	discardPort = 9
)

// frames are UDP streams of a fabric in virtual time. All but the loops' own is for the control loop.
type frames struct {
	name    string
	control loop.Loop
	streams []*emission
}

// emission is one stream, on its NIC's loop.
type emission struct {
	pair    pair
	dev     emitter
	d       rnic.Datagram
	cost    uint64 // of a datagram: bits · 10^9
	rate    uint64 // bits a second
	start   loop.Time
	next    uint64 // datagram
	sent    uint64
	refused uint64 // found the port's queue full, and are gone
	timer   loop.Timer
	on      bool
	err     error
}

// frames starts UDP streams that leave through the NICs' ports.
func (in *Injector) frames(spec *faults.Spec, pairs []pair, done func(fabric.Applied, error)) {
	u := &frames{name: spec.Name, control: in.fab.(fabric.Virtual).Control()}
	class := uint8(0)
	if spec.DSCP != nil {
		class = *spec.DSCP << 2
	}
	for _, p := range pairs {
		to, _ := in.ground.Plan.Port(p.to)
		dev, ok := in.nics[p.from].Device.(emitter)
		if !ok {
			err := fmt.Errorf("%s: its NIC lets no packets of the host's own through", p.from)
			in.answer(func() { done(nil, named(spec.Name, "apply", err)) })
			return
		}
		for range streams(spec) {
			e := &emission{pair: p, dev: dev, rate: uint64(spec.Rate), d: rnic.Datagram{
				To: to.Addr.Addr(), SrcPort: uint16(firstPort + len(u.streams)), DstPort: discardPort, TrafficClass: class, Len: in.ground.datagram(spec, p),
			}}
			e.cost = uint64(e.d.Len) * 8 * uint64(time.Second)
			e.timer.Fire = e.send
			u.streams = append(u.streams, e)
		}
	}
	u.each(func(e *emission) { e.begin() }, func() { done(u, nil) })
}

// each does something on every stream's loop, and then calls back on the control loop.
func (u *frames) each(do func(*emission), done func()) {
	left := len(u.streams)
	for _, e := range u.streams {
		e.dev.Loop().Post(func() {
			do(e)
			u.control.Post(func() {
				if left--; left == 0 {
					done()
				}
			})
		})
	}
}

func (e *emission) begin() {
	e.on, e.start = true, e.dev.Loop().Now()
	e.send()
}

// send sends the datagram that is due, and waits for the next: at its time since the start, whatever became of those before.
func (e *emission) send() {
	if !e.on {
		return
	}
	e.d.ID = uint16(e.next)
	switch err := e.dev.Emit(e.d); {
	case err == nil:
		e.sent++
	case errors.Is(err, rnic.ErrFull):
		e.refused++
	default:
		e.err, e.on = err, false
		return
	}
	e.next++
	hi, lo := bits.Mul64(e.next, e.cost)
	at, _ := bits.Div64(hi%e.rate, lo, e.rate)
	e.dev.Loop().Arm(&e.timer, max(e.start.Add(time.Duration(at)), e.dev.Loop().Now().Add(1)))
}

// Verify implements fabric.Applied.
func (u *frames) Verify(done func(error)) {
	errs := make([]error, len(u.streams))
	u.indexed(func(i int, e *emission) {
		switch {
		case e.err != nil:
			errs[i] = fmt.Errorf("%s→%s: %w", e.pair.from, e.pair.to, e.err)
		case !e.on || e.next == 0:
			errs[i] = fmt.Errorf("%s→%s: nothing is sent", e.pair.from, e.pair.to)
		}
	}, func() { done(named(u.name, "verify", errors.Join(errs...))) })
}

// indexed is each with the streams' numbers.
func (u *frames) indexed(do func(int, *emission), done func()) {
	number := map[*emission]int{}
	for i, e := range u.streams {
		number[e] = i
	}
	u.each(func(e *emission) { do(number[e], e) }, done)
}

// Hits implements fabric.Applied: what the ports took.
func (u *frames) Hits(done func(uint64, error)) {
	sent := make([]uint64, len(u.streams))
	u.indexed(func(i int, e *emission) { sent[i] = e.sent }, func() {
		sum := uint64(0)
		for _, n := range sent {
			sum += n
		}
		done(sum, nil)
	})
}

// Heal implements fabric.Applied.
func (u *frames) Heal(done func(error)) {
	u.each(func(e *emission) {
		e.on = false
		e.dev.Loop().Disarm(&e.timer)
	}, func() { done(nil) })
}

// VerifyClean implements fabric.Applied.
func (u *frames) VerifyClean(done func(error)) {
	errs := make([]error, len(u.streams))
	u.indexed(func(i int, e *emission) {
		if e.on || e.timer.Armed() {
			errs[i] = fmt.Errorf("%s→%s: it still sends", e.pair.from, e.pair.to)
		}
	}, func() { done(named(u.name, "verify that it is healed", errors.Join(errs...))) })
}
