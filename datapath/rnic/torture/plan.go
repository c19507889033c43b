package torture

import (
	"math/rand/v2"
	"time"

	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// Options bound what a run may be. The zero value leaves everything to the seed.
type Options struct {
	Recovery rnic.Recovery // "": any
	Kind     *verbs.QPType // nil: any, RC most often
	Clean    bool          // no faults on the wire
	Bugs     rnic.Bugs     // planted in both devices
}

// plan is what a run is, as its seed has it.
type plan struct {
	seed     uint64
	rng      *rand.Rand
	kind     verbs.QPType
	mtu      int
	srq      bool
	bytes    bool // frames cross as bytes
	v6       bool
	phantom  bool // memory without bytes
	psn      [2]roce.PSN
	depth    int // of the send queues
	profile  rnic.Profile
	recovery [2]rnic.Recovery
	bugs     rnic.Bugs
	attr     verbs.QPAttr
	faults   [2]faults
	poison   bool
	late     bool // receives come late
	messages [2]int
	target   int // bytes that the peer's requests go to
	rate     uint64
	pairs    int // of queue pairs, each with work of its own
}

// faults are how often the wire does what, as a fraction of the packets, until the budget is used up.
type faults struct {
	drop, double, delay, spoil float64
	mark                       float64       // CE, without end
	most                       time.Duration // of a delay
	budget                     int
}

func (f *faults) any() bool { return f.budget > 0 && f.drop+f.double+f.delay+f.spoil > 0 }

func newPlan(seed uint64, o *Options) *plan {
	rng := rand.New(rand.NewPCG(seed, 0x70727475))
	p := &plan{seed: seed, rng: rng, bugs: o.Bugs}
	p.kind = pick(rng, verbs.RC, verbs.RC, verbs.RC, verbs.RC, verbs.RC, verbs.RC, verbs.UC, verbs.UD)
	if o.Kind != nil {
		p.kind = *o.Kind
	}
	p.mtu = pick(rng, 256, 256, 256, 512, 1024)
	p.srq = rng.IntN(4) == 0
	p.bytes = rng.IntN(10) == 0
	p.v6 = p.bytes && rng.IntN(2) == 0
	p.phantom = !p.bytes && p.kind != verbs.UD && rng.IntN(5) == 0
	p.depth = pick(rng, 2, 8, 32, 64)
	p.late = rng.IntN(3) == 0
	p.rate = pick[uint64](rng, 10e9, 100e9, 400e9)
	for i := range p.psn {
		p.psn[i] = roce.PSN(rng.Uint32()) & roce.PSNMask
		if rng.IntN(3) > 0 { // wraps soon
			p.psn[i] = roce.PSN(0).Add(-rng.IntN(60))
		}
		p.messages[i] = rng.IntN(30)
	}
	p.messages[0]++
	p.target = 4096
	if rng.IntN(40) == 0 { // long enough for what counts in windows of 1,024 PSNs
		p.target, p.mtu = 32768, 256
		p.messages = [2]int{30 + rng.IntN(30), 30 + rng.IntN(30)}
	}
	if rng.IntN(3) == 0 { // a make's hardware, congestion control and pauses under habits drawn by lot
		names := rnic.ProfileNames()
		p.profile, _ = rnic.ProfileNamed(names[rng.IntN(len(names))])
	}
	p.profile = rnic.Profile{
		Name: "torture", DCQCN: p.profile.DCQCN, Scheduler: p.profile.Scheduler, Pause: p.profile.Pause, Stages: p.profile.Stages,
		Recovery:        pick(rng, rnic.GoBackN, rnic.GoBackN, rnic.GoBack0, rnic.SelectiveRepeat, rnic.SelectiveRepeat),
		MaxUnacked:      pick(rng, 1, 4, 16, 64, 0),
		AckRequestEvery: pick(rng, 0, 1, 4, 16),
		AckEvery:        pick(rng, 0, 0, 2, 4),
		AckDelay:        pick(rng, time.Microsecond, 5*time.Microsecond),
		TimerTick:       pick(rng, 0, 0, 10*time.Microsecond),
	}
	if o.Recovery != "" {
		p.profile.Recovery = o.Recovery
	}
	for i := range p.recovery {
		p.recovery[i] = p.profile.Recovery
	}
	if o.Recovery == "" && p.profile.Recovery == rnic.SelectiveRepeat && rng.IntN(6) == 0 {
		p.recovery[rng.IntN(2)] = rnic.GoBackN // they are to get along
	}
	p.attr = verbs.QPAttr{
		Access:  verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic,
		PathMTU: p.mtu, MaxRDAtomic: pick(rng, 1, 2, 4, 16), MinRNRTimer: pick[uint8](rng, 1, 1, 3, 6),
		Timeout: pick[uint8](rng, 4, 5, 6), RetryCnt: 7, RNRRetry: 7, QKey: 0x1234,
	}
	p.attr.MaxDestRDAtomic = p.attr.MaxRDAtomic + rng.IntN(3)
	if !o.Clean && rng.IntN(5) > 0 {
		for i := range p.faults {
			p.faults[i] = someFaults(rng)
		}
	}
	p.poison = p.kind == verbs.RC && rng.IntN(6) == 0
	p.pairs = pick(rng, 1, 1, 1, 1, 1, 1, 2, 4)
	p.profile.OneNAK = rng.IntN(4) == 0
	return p
}

// beside is the plan of another pair of the same devices.
func (p *plan) beside(k int, o *Options) *plan {
	n := newPlan(p.seed^uint64(k)<<56, o)
	n.profile, n.recovery, n.bugs, n.faults, n.rate = p.profile, p.recovery, p.bugs, p.faults, p.rate
	n.bytes, n.v6 = p.bytes, p.v6
	n.phantom = n.phantom && !n.bytes
	n.mtu = min(n.mtu, 1024)
	return n
}

func someFaults(rng *rand.Rand) faults {
	f := faults{budget: rng.IntN(80), most: pick(rng, 2*time.Microsecond, 20*time.Microsecond, 200*time.Microsecond)}
	f.mark = pick(rng, 0, 0, 0.1)
	for _, p := range []*float64{&f.drop, &f.double, &f.delay, &f.spoil} {
		if rng.IntN(2) == 0 {
			*p = pick(rng, 0.005, 0.02, 0.1)
		}
	}
	return f
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }
