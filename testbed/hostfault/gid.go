package hostfault

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
	"github.com/rocebed/rocebed/workloads"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// misdirected is queue pairs of a NIC that send from another GID than they were connected with: an address that the port gets for this. A queue pair's
// address vector can be changed while its send queue is drained (SQD; InfiniBand specification 10.3.1.6), so it is stopped, changed, and goes on.
type misdirected struct {
	in   *Injector
	at   topo.PortRef
	nic  fabric.NIC
	b    *bench
	addr netip.Addr

	qps    []*workloads.End // on the NIC's loop: those that are changed, or being changed
	index  int              // of the wrong GID
	added  bool
	before uint64 // packets that the NIC had sent
	hit    uint64
	over   bool
}

// How often it looks whether a GID is there and a queue is drained, and how long, in wall time. Healing may have to wait until retries run out.
const (
	gidLook     = 5 * time.Millisecond
	gidPatience = 10 * time.Second
	gidHealing  = 25 * time.Second
)

func (in *Injector) misdirect(spec *faults.Spec, at topo.PortRef) (effect, error) {
	addr, err := spec.WrongAddress(in.cfg.Plan, at)
	if err != nil {
		return nil, err
	}
	if in.cfg.Plan.Node(at.Node).Kind == topo.SoftHost {
		return nil, strict.At("at", "%s: among the kernel's nodes a software NIC sends from its own address (the soft and sim backends can)", at)
	}
	m := &misdirected{in: in, at: at, addr: addr, b: in.benches[at], index: -1}
	if in.cfg.Fabric != nil {
		for _, n := range in.cfg.Fabric.Host(at.Node).NICs() {
			if n.Port == at {
				m.nic = n
			}
		}
	}
	return m, nil
}

// back answers on the control loop, from the NIC's.
func (m *misdirected) back(done func(error)) func(error) {
	return func(err error) {
		m.in.cfg.Control.Post(func() {
			if err != nil {
				err = fmt.Errorf("%s: %w", m.at, err)
			}
			done(err)
		})
	}
}

// aside does something that takes a while, beside the loops, and answers on the NIC's.
func (m *misdirected) aside(do func() error, then func(error)) {
	go func() {
		err := do()
		m.b.loop.Post(func() { then(err) })
	}()
}

// until looks on the NIC's loop, every now and then, whether something has come about.
func (m *misdirected) until(patience time.Duration, what string, look func(answer func(yes bool, err error)), then func(error)) {
	d := m.in.cfg.Fabric.Dilation()
	limit := m.b.loop.Now().Add(d.Fabric(patience))
	var again func()
	again = func() {
		look(func(yes bool, err error) {
			switch {
			case yes || err != nil:
				then(err)
			case m.b.loop.Now() >= limit:
				then(fmt.Errorf("%s: not within %v", what, patience))
			default:
				loop.After(m.b.loop, d.Fabric(gidLook), again)
			}
		})
	}
	again()
}

// inOrder does steps one after the other, until one fails.
func inOrder(done func(error), steps ...func(func(error))) {
	if len(steps) == 0 {
		done(nil)
		return
	}
	steps[0](func(err error) {
		if err != nil {
			done(err)
			return
		}
		inOrder(done, steps[1:]...)
	})
}

// each does something with every queue pair that is changed, at once. Those in the error state are left as they are.
func (m *misdirected) each(do func(qp verbs.QP, answer func(error)), done func(error)) {
	all := gather(done)
	for _, e := range slices.Clone(m.qps) {
		if !e.Open() || e.QP().State() == verbs.Err {
			continue
		}
		answer := all.ask()
		do(e.QP(), func(err error) {
			if err != nil && (!e.Open() || e.QP().State() == verbs.Err) { // it has failed meanwhile
				err = nil
			}
			if err != nil {
				err = fmt.Errorf("QP %#x: %w", e.QP().Num(), err)
			}
			answer(err)
		})
	}
	all.asked()
}

// stop stops the queue pairs' sending, and waits until what is under way has ended.
func (m *misdirected) stop(patience time.Duration) func(func(error)) {
	return func(done func(error)) {
		m.each(func(qp verbs.QP, answer func(error)) {
			qp.Modify(verbs.QPAttr{State: verbs.SQD}, verbs.MaskState, func(err error) {
				if err != nil {
					answer(err)
					return
				}
				m.until(patience, "its send queue is drained", func(look func(bool, error)) {
					qp.Query(func(a verbs.QPAttr, err error) { look(err == nil && (a.State == verbs.Err || !a.SQDraining), err) })
				}, answer)
			})
		}, done)
	}
}

// goOn lets them send from a GID.
func (m *misdirected) goOn(index func() int) func(func(error)) {
	return func(done func(error)) {
		m.each(func(qp verbs.QP, answer func(error)) {
			qp.Query(func(a verbs.QPAttr, err error) {
				if err != nil || a.State == verbs.Err {
					answer(err)
					return
				}
				a.AH.SGIDIndex = index()
				// Without the state: rxe begins to drain anew when it hears of SQD.
				qp.Modify(verbs.QPAttr{AH: a.AH}, verbs.MaskAH, func(err error) {
					if err != nil {
						answer(err)
						return
					}
					qp.Modify(verbs.QPAttr{State: verbs.RTS}, verbs.MaskState, func(err error) {
						if err == nil {
							// rxe doesn't look by itself at what a drained queue still has: a request that timed out meanwhile would wait for the next post.
							err = qp.PostSend()
						}
						answer(err)
					})
				})
			})
		}, done)
	}
}

// sent reads how many packets the NIC has sent.
func (m *misdirected) sent(to func(uint64)) func(func(error)) {
	return func(done func(error)) {
		var n uint64
		m.aside(func() error {
			ctx, cancel := context.WithTimeout(context.Background(), gidPatience)
			defer cancel()
			samples, err := m.in.cfg.Fabric.Collect(ctx)
			for _, s := range samples {
				if s.Name == "sent_pkts" && len(s.Labels) > 1 && s.Labels[0] == m.at.Node && s.Labels[1] == m.at.Port {
					n = uint64(s.Value)
					return nil
				}
			}
			return errors.Join(err, errors.New("what it has sent can't be read"))
		}, func(err error) {
			to(n)
			done(err)
		})
	}
}

func (m *misdirected) address(add bool) func(func(error)) {
	return func(done func(error)) {
		a, ok := m.in.cfg.Fabric.(fabric.Addresser)
		if !ok {
			done(errors.New("this fabric gives ports no further addresses"))
			return
		}
		m.aside(func() error {
			if add {
				return a.AddAddress(m.at, m.addr)
			}
			return a.RemoveAddress(m.at, m.addr)
		}, func(err error) {
			if err == nil {
				m.added = add
			}
			done(err)
		})
	}
}

// known waits until the NIC has a GID for the address, or has none any more.
func (m *misdirected) known(want bool) func(func(error)) {
	return func(done func(error)) {
		m.until(gidPatience, fmt.Sprintf("a GID for %v (%v)", m.addr, want), func(answer func(bool, error)) {
			m.index = slices.IndexFunc(m.nic.Device.GIDs(), func(g verbs.GID) bool { return g.Unmap() == m.addr })
			answer((m.index >= 0) == want, nil)
		}, done)
	}
}

func (m *misdirected) apply(done func(error)) {
	m.b.loop.Post(func() {
		inOrder(m.back(done), m.address(true), m.known(true), func(done func(error)) {
			for _, e := range m.b.ends {
				if e.Connected() && e.QP().Type() != verbs.UD {
					m.qps = append(m.qps, e)
				}
			}
			done(nil)
		}, m.stop(gidPatience), m.sent(func(n uint64) { m.before = n }), m.goOn(func() int { return m.index }))
	})
}

// is reads back which GID the queue pairs send from.
func (m *misdirected) is(index func() int, done func(error)) {
	m.each(func(qp verbs.QP, answer func(error)) {
		qp.Query(func(a verbs.QPAttr, err error) {
			if err == nil && a.State != verbs.Err && a.AH.SGIDIndex != index() {
				err = fmt.Errorf("it sends from GID %d, not %d", a.AH.SGIDIndex, index())
			}
			answer(err)
		})
	}, done)
}

func (m *misdirected) verify(done func(error)) {
	m.b.loop.Post(func() { m.is(func() int { return m.index }, m.back(done)) })
}

func (m *misdirected) clean(done func(error)) {
	m.b.loop.Post(func() {
		inOrder(m.back(done), m.known(false), func(done func(error)) { m.is(func() int { return m.nic.GIDIndex }, done) })
	})
}

// hits are the packets that the NIC has sent since its queue pairs had stood still.
func (m *misdirected) hits(done func(uint64, error)) {
	m.b.loop.Post(func() {
		if m.over {
			n := m.hit
			m.back(func(error) { done(n, nil) })(nil)
			return
		}
		m.sent(func(n uint64) { m.hit = n - m.before })(m.back(func(err error) { done(m.hit, err) }))
	})
}

func (m *misdirected) heal(done func(error)) {
	m.b.loop.Post(func() {
		steps := []func(func(error)){m.stop(gidHealing)}
		if !m.over {
			steps = append(steps, m.sent(func(n uint64) { m.hit, m.over = n-m.before, true }))
		}
		steps = append(steps, m.goOn(func() int { return m.nic.GIDIndex }))
		if m.added {
			steps = append(steps, m.address(false))
		}
		inOrder(m.back(done), steps...)
	})
}
