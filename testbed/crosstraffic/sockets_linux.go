package crosstraffic

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

// stream is sockets in two namespaces, and what sends by them. It is made running; stop ends it and closes them, and may be
// called again. What it counts can be asked afterwards, too.
type stream interface {
	sent() (uint64, error)
	// trouble is why it sends no more.
	trouble() error
	stop() error
	// ports are what its sockets are bound to: at the sender, at the receiver.
	ports() (from, to uint16)
}

// sockets are the streams of one fault. Its methods work on goroutines, one at a time.
type sockets struct {
	name string
	mu   sync.Mutex
	all  []located
}

type located struct {
	stream
	ends
	pair  pair
	proto string // udp or tcp
}

// ends are what a stream is made between.
type ends struct {
	from, to         *linux.Namespace
	fromAddr, toAddr netip.Addr
	class            int    // TOS or traffic class
	rate             uint64 // payload, bits a second of wall time
	size             int
	share            int // of a host's queue in bytes that the stream may fill
}

func (e *ends) network(kind string) string {
	if e.fromAddr.Is4() {
		return kind + "4"
	}
	return kind + "6"
}

// hostQueue is how much of a host's own queue streams may fill, all together: what stands there holds up RoCE too, and where it
// were full, RoCE would be lost.
const hostQueue = 128 << 10

// sockets starts UDP or TCP streams of the kernel.
func (in *Injector) sockets(spec *faults.Spec, pairs []pair, done func(fabric.Applied, error)) {
	go func() {
		s := &sockets{name: spec.Name}
		if err := s.start(in, spec, pairs); err != nil {
			done(nil, named(spec.Name, "apply", errors.Join(err, s.stop())))
			return
		}
		done(s, nil)
	}()
}

func (s *sockets) start(in *Injector, spec *faults.Spec, pairs []pair) error {
	world, ok := in.fab.(interface{ Wiring() *linux.Wiring })
	if !ok {
		return errors.New("the fabric has no namespaces")
	}
	plan, dilation := in.ground.Plan, in.fab.Dilation()
	from := map[topo.PortRef]int{} // pairs, by sender
	for _, p := range pairs {
		from[p.from]++
	}
	for _, p := range pairs {
		src, _ := plan.Port(p.from)
		dst, _ := plan.Port(p.to)
		e := ends{
			from: world.Wiring().Node(p.from.Node), to: world.Wiring().Node(p.to.Node), fromAddr: src.Addr.Addr(), toAddr: dst.Addr.Addr(),
			share: max(hostQueue/(len(pairs)*streams(spec)), 8<<10), size: in.ground.datagram(spec, p),
		}
		if e.from == nil || e.to == nil {
			return fmt.Errorf("%s→%s: there is no namespace for both", p.from, p.to)
		}
		if spec.DSCP != nil {
			e.class = int(*spec.DSCP) << 2
		}
		rate := spec.Rate
		if rate == 0 {
			rate = plan.Link(p.from).Rate
			if k, ok := in.fab.(fabric.Kinds); ok && k.Kind(p.from.Node) == topo.SoftHost { // whose own stack no line holds back
				rate /= topo.Rate(from[p.from] * streams(spec))
			}
		}
		e.rate = max(uint64(rate)/uint64(dilation.Factor()), 1)
		for range streams(spec) {
			s.all = append(s.all, located{pair: p, proto: "udp", ends: e})
			if spec.Kind == faults.TCPTraffic {
				s.all[len(s.all)-1].proto = "tcp"
			}
		}
	}
	return s.open()
}

// atOnce is how many streams are opened at a time: nearly all of it is waiting for the far end.
const atOnce = 16

// open opens the streams, or says what kept some from it. Then those that are open are left to be stopped.
func (s *sockets) open() error {
	errs := make([]error, len(s.all))
	var work sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for i := range s.all {
		work.Add(1)
		turns <- struct{}{}
		go func() {
			defer func() { <-turns; work.Done() }()
			l, open := &s.all[i], openUDP
			if l.proto == "tcp" {
				open = openTCP
			}
			one, err := open(&l.ends)
			if err != nil {
				errs[i] = fmt.Errorf("%s→%s: %w", l.pair.from, l.pair.to, err)
				return
			}
			l.stream = one
		}()
	}
	work.Wait()
	s.all = slices.DeleteFunc(s.all, func(l located) bool { return l.stream == nil })
	return errors.Join(errs...)
}

func (s *sockets) each(do func(*located) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for i := range s.all {
		if err := do(&s.all[i]); err != nil {
			errs = append(errs, fmt.Errorf("%s→%s: %w", s.all[i].pair.from, s.all[i].pair.to, err))
		}
	}
	return errors.Join(errs...)
}

func (s *sockets) stop() error {
	return s.each(func(l *located) error { return l.stop() })
}

// Verify implements fabric.Applied: the kernel shows every stream's sockets, and none has stopped sending.
func (s *sockets) Verify(done func(error)) {
	go func() {
		done(named(s.name, "verify", s.each(func(l *located) error {
			if err := l.trouble(); err != nil {
				return err
			}
			if a, b, err := l.open(); err != nil || !a || !b {
				return errors.Join(err, fmt.Errorf("its sockets are open at the sender: %v, at the receiver: %v", a, b))
			}
			return nil
		})))
	}()
}

// open says whether the kernel still has the stream's sockets.
func (l *located) open() (from, to bool, err error) {
	a, b := l.ports()
	if from, err = bound(l.from, l.proto, a); err == nil {
		to, err = bound(l.to, l.proto, b)
	}
	return from, to, err
}

// Hits implements fabric.Applied.
func (s *sockets) Hits(done func(uint64, error)) {
	go func() {
		var sum atomic.Uint64
		err := s.each(func(l *located) error {
			n, err := l.sent()
			sum.Add(n)
			return err
		})
		done(sum.Load(), named(s.name, "count hits", err))
	}()
}

// Heal implements fabric.Applied.
func (s *sockets) Heal(done func(error)) {
	go func() { done(named(s.name, "heal", s.stop())) }()
}

// VerifyClean implements fabric.Applied: the kernel has none of the sockets any more.
func (s *sockets) VerifyClean(done func(error)) {
	go func() {
		done(named(s.name, "verify that it is healed", s.each(func(l *located) error {
			a, b, err := l.open()
			if err == nil && (a || b) {
				err = fmt.Errorf("its sockets are still open at the sender: %v, at the receiver: %v", a, b)
			}
			return err
		})))
	}()
}
