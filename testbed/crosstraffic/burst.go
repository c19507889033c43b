package crosstraffic

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads"
)

// message is the size of a burst's messages unless the fault says, outstanding how many bytes of them a queue pair has under way
// at most: more than any switch here lets a port hold, so that a burst is there at once.
const (
	message     = 64 << 10
	outstanding = 4 << 20
	mostDeep    = 256
)

const (
	defaultDSCP = 26 // RoCE's, as workloads have it
	ect0        = 2
)

// burst is RDMA WRITEs beside the workloads. Its state is for the loop of its first NIC.
type burst struct {
	in      *Injector
	name    string
	loop    loop.Loop
	engine  *workloads.Engine
	senders int // that have not begun
	applied func(fabric.Applied, error)
	report  *workloads.Report // nil: it runs
	waiting []func()          // for the report
}

// burst starts a roce-burst or an incast-burst.
func (in *Injector) burst(spec *faults.Spec, pairs []pair, done func(fabric.Applied, error)) {
	cfg := in.config(pairs)
	specs, pace := programs(spec, pairs)
	b := &burst{in: in, name: spec.Name, loop: control(&cfg), senders: len(specs), applied: done}
	cfg.Pace, cfg.Observer = pace, b.observe
	var err error
	if b.engine, err = workloads.NewEngine(cfg, specs); err != nil {
		in.answer(func() { done(nil, named(spec.Name, "apply", err)) })
		return
	}
	b.engine.Start(b.ended)
}

// programs are a burst's workloads, one a sender, and how they are let go.
func programs(spec *faults.Spec, pairs []pair) (specs []workloads.Spec, pace workloads.Pace) {
	var senders []topo.PortRef
	to := map[topo.PortRef][]string{}
	for _, p := range pairs {
		if to[p.from] == nil {
			senders = append(senders, p.from)
		}
		to[p.from] = append(to[p.from], p.to.String())
	}
	dscp, off := uint8(defaultDSCP), false
	if spec.DSCP != nil {
		dscp = *spec.DSCP
	}
	class := int(dscp)<<2 | ect0
	for _, from := range senders {
		size, n := amount(spec, len(to[from]))
		w := workloads.Spec{
			Name: spec.Name + "/" + from.String(), Kind: workloads.Write, From: []string{from.String()}, To: to[from], Pairing: workloads.Cross,
			Size: topo.Bytes(size), QPs: streams(spec), Depth: int(min(max(outstanding/size, 2), mostDeep)), Messages: n, Verify: &off,
			QP: workloads.QPSpec{TrafficClass: &class},
		}
		switch {
		case spec.Kind == faults.IncastBurst && spec.Period > 0:
			pace = workloads.Pace{Period: spec.Period, Burst: uint64(n)}
			w.Messages, w.StallTimeout = math.MaxInt, max(4*spec.Period, stall)
		case spec.Rate > 0:
			pace = workloads.Pace{Rate: spec.Rate}
		default:
			w.Depth = min(w.Depth, n)
		}
		specs = append(specs, w)
	}
	return specs, pace
}

// stall is how long a burst that comes back may stand still, for which it has every reason.
const stall = time.Minute

// amount is how large the messages of one of a sender's queue pairs are, and how many there are of them. Without a size that the
// fault gives they are such that they come to the bytes, or a few more.
func amount(spec *faults.Spec, receivers int) (size uint64, messages int) {
	size = uint64(spec.Size)
	if spec.Bytes == 0 {
		if size == 0 {
			size = message
		}
		return size, math.MaxInt
	}
	each := over(uint64(spec.Bytes), uint64(receivers*streams(spec)))
	if size != 0 {
		return size, int(over(each, size))
	}
	n := over(each, message)
	return over(each, n), int(n)
}

func over(a, b uint64) uint64 { return (a + b - 1) / b }

// observe hears of the senders' beginning.
func (b *burst) observe(e workloads.Event) {
	if e.Kind != workloads.EventStarted || b.applied == nil {
		return
	}
	if b.senders--; b.senders == 0 {
		b.applied(b, nil)
		b.applied = nil
	}
}

// ended takes the engine's word that everything of it is gone again.
func (b *burst) ended(report *workloads.Report) {
	b.report = report
	if b.applied != nil {
		err := report.Err
		for _, r := range report.Results {
			if r.Failure != "" {
				err = errors.Join(err, errors.New(r.Failure))
			}
		}
		b.applied(nil, named(b.name, "apply", err))
		b.applied = nil
	}
	for _, fn := range b.waiting {
		fn()
	}
	b.waiting = nil
}

// left says what of the burst is still there once it has ended.
func (b *burst) left() error {
	err := b.report.Err
	for _, r := range b.report.Results {
		err = errors.Join(err, r.TearDown)
	}
	return err
}

// looks is how often Verify looks before it gives up, after times that begin with a microsecond and double: 65 ms in all.
const looks = 16

// Verify implements fabric.Applied: every queue pair has posted, and none has failed.
func (b *burst) Verify(done func(error)) { b.look(looks, time.Microsecond, done) }

func (b *burst) look(left int, wait time.Duration, done func(error)) {
	b.engine.Progress(func(all []workloads.Progress) {
		var failed, silent error
		for i := range all {
			p := &all[i]
			switch {
			case p.Failure != "":
				failed = errors.Join(failed, fmt.Errorf("%s→%s, QP %#x: %s", p.Src, p.Dst, p.SrcQPN, p.Failure))
			case p.Posted == 0:
				silent = errors.Join(silent, fmt.Errorf("%s→%s, QP %#x: nothing was posted", p.Src, p.Dst, p.SrcQPN))
			}
		}
		if failed == nil && silent != nil && left > 1 {
			loop.After(b.loop, wait, func() { b.look(left-1, 2*wait, done) })
			return
		}
		done(named(b.name, "verify", errors.Join(failed, silent)))
	})
}

// Hits implements fabric.Applied: the packets of the messages that have completed, first transmissions alone.
func (b *burst) Hits(done func(uint64, error)) {
	b.engine.Progress(func(all []workloads.Progress) {
		sum := uint64(0)
		for i := range all {
			sum += all[i].Packets()
		}
		done(sum, nil)
	})
}

// Heal implements fabric.Applied: nothing more is posted, what is outstanding may complete for a while, and the queue pairs are
// destroyed.
func (b *burst) Heal(done func(error)) {
	b.loop.Post(func() {
		heal := func() { done(named(b.name, "heal", b.left())) }
		if b.report != nil {
			heal()
			return
		}
		b.waiting = append(b.waiting, heal)
		b.engine.Wind(b.in.patience)
	})
}

// VerifyClean implements fabric.Applied.
func (b *burst) VerifyClean(done func(error)) {
	b.loop.Post(func() {
		if b.report == nil {
			done(named(b.name, "verify that it is healed", errors.New("its queue pairs are still there")))
			return
		}
		done(named(b.name, "verify that it is healed", b.left()))
	})
}
