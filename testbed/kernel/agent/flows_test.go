//go:build linux

package agent

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/topo"
)

// shelf has as many flows as an engine's tables, and no port behind them: what waits and what was sent, tests say.
type shelf struct {
	room  int
	flows map[engine.FlowKey]*shelved
}

type shelved struct {
	s       *shelf
	key     engine.FlowKey
	rate    topo.Rate
	sent    uint64
	waiting int
}

func (s *shelf) open(key engine.FlowKey, rate uint64) (paced, error) {
	if len(s.flows) == s.room {
		return nil, engine.ErrFlows
	}
	if s.flows[key] != nil {
		panic("opened twice: " + key.To.String()) // the engine's tables refuse it, and an agent dies of that
	}
	f := &shelved{s: s, key: key, rate: topo.Rate(rate)}
	s.flows[key] = f
	return f, nil
}

func (f *shelved) SetRate(r topo.Rate) error { f.rate = r; return nil }
func (f *shelved) Read() (engine.FlowReading, error) {
	return engine.FlowReading{Packets: f.waiting, TxBytes: f.sent}, nil
}

func (f *shelved) Close() (bool, error) {
	f.rate = 0
	if f.waiting > 0 {
		return false, nil
	}
	delete(f.s.flows, f.key)
	return true, nil
}

// desk is the flows of a port whose queue pairs are a map.
type desk struct {
	*flows
	shelf *shelf
	qps   map[uint32]uint32
	asked int
	now   time.Duration
}

const (
	line     = 10 * topo.Gbps
	dilation = 64
)

var far = netip.MustParseAddr("10.0.0.2")

func newDesk(t *testing.T, room int, change func(*dcqcn.Params)) *desk {
	t.Helper()
	p, err := dcqcn.ProfileNamed("paper")
	if err != nil {
		t.Fatal(err)
	}
	params := p.Params
	if change != nil {
		change(&params)
	}
	d := &desk{shelf: &shelf{room, map[engine.FlowKey]*shelved{}}, qps: map[uint32]uint32{}, now: time.Hour}
	port := &Port{Number: 1, Name: "h1:eth0", NIC: &NIC{Line: uint64(line), Params: params}}
	peers := newPeers(func(qpn uint32) (uint32, bool, error) { d.asked++; r, ok := d.qps[qpn]; return r, ok, nil })
	d.flows = newFlows(port, dilation, &peers, d.shelf.open)
	if err := d.set(d.now, params); err != nil {
		t.Fatal(err)
	}
	return d
}

// tell is a CNP for a queue pair, some time later.
func (d *desk) tell(t *testing.T, qpn uint32, after time.Duration) {
	t.Helper()
	d.pass(t, after)
	remote, ok, err := d.peers.of(d.now, qpn)
	if err == nil && ok {
		err = d.cnp(d.now, qpn, source{far, remote})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pass lets wall time pass.
func (d *desk) pass(t *testing.T, wall time.Duration) {
	t.Helper()
	for end := d.now + wall; ; {
		next, ok, err := d.timers(d.now)
		if err != nil {
			t.Fatal(err)
		}
		if ok && next <= d.now {
			t.Fatalf("at %v something is due at %v still", d.now, next)
		}
		if !ok || next > end {
			d.now = end
			return
		}
		d.now = next
	}
}

func (d *desk) at(t *testing.T, remote uint32) topo.Rate {
	t.Helper()
	f := d.shelf.flows[engine.FlowKey{Port: 1, To: far, QPN: remote}]
	if f == nil {
		t.Fatalf("QP %#x has no rate of its own", remote)
	}
	return f.rate
}

func TestACNPLimitsAQueuePairUntilItIsAtLineRateAgain(t *testing.T) {
	d := newDesk(t, 100, nil)
	d.qps[17] = 33
	d.tell(t, 17, time.Second)
	if r := d.at(t, 33); r != line/dilation/2 {
		t.Errorf("after the first CNP %v of wall time", r)
	}
	d.tell(t, 17, time.Millisecond)
	if r := d.at(t, 33); r != line/dilation/4 {
		t.Errorf("after the second CNP %v of wall time", r)
	}
	d.pass(t, 55*time.Microsecond*dilation+time.Millisecond)
	if r := d.at(t, 33); r < line/dilation*3/8-8 || r > line/dilation*3/8 {
		t.Errorf("after one increase %v", r)
	}
	d.pass(t, 2*time.Minute)
	if len(d.shelf.flows) > 0 {
		t.Errorf("at line rate again, the engine has %d flows", len(d.shelf.flows))
	}
}

func TestTheByteCounterHearsOfWhatIsSent(t *testing.T) {
	d := newDesk(t, 100, func(p *dcqcn.Params) { p.RPGTimeReset = 0 })
	d.qps[17] = 33
	d.tell(t, 17, time.Second)
	for _, f := range d.shelf.flows {
		f.sent += 12_000_000 // 10 MB is an increase
	}
	before := d.at(t, 33)
	d.pass(t, 2*countEvery)
	if r := d.at(t, 33); r != (before+line/dilation)/2 {
		t.Errorf("12 MB took it from %v to %v", before, r)
	}
}

func TestAReleasedFlowIsOthersOnlyOnceNothingOfItWaits(t *testing.T) {
	d := newDesk(t, 1, nil)
	d.qps[17], d.qps[18] = 33, 34
	d.tell(t, 17, time.Second)
	for _, f := range d.shelf.flows {
		f.waiting = 3
	}
	d.pass(t, 2*time.Minute)
	if len(d.shelf.flows) != 1 {
		t.Fatalf("%d flows are left of one that has packets", len(d.shelf.flows))
	}
	d.tell(t, 18, time.Second)
	if d.without != 1 || len(d.shelf.flows) != 1 {
		t.Errorf("with no room, %d went without and there are %d flows", d.without, len(d.shelf.flows))
	}
	for _, f := range d.shelf.flows {
		f.waiting = 0
	}
	d.tell(t, 18, time.Second)
	d.at(t, 34)
	if d.without != 1 {
		t.Errorf("%d went without", d.without)
	}
	d.tell(t, 17, time.Millisecond) // a released one is limited again, if there is room; after its long rest α is next to nothing, so that the first CNP hardly counts
	d.tell(t, 17, time.Millisecond)
	if d.without != 2 {
		t.Errorf("%d went without", d.without)
	}
}

func TestAFlowThatIsStillBeingReleasedIsLimitedAgainByTheSame(t *testing.T) {
	d := newDesk(t, 1, nil)
	d.qps[17] = 33
	d.tell(t, 17, time.Second)
	d.shelf.flows[engine.FlowKey{Port: 1, To: far, QPN: 33}].waiting = 1
	d.pass(t, 2*time.Minute)
	if len(d.shelf.flows) != 1 {
		t.Fatalf("%d flows", len(d.shelf.flows))
	}
	d.tell(t, 17, time.Second) // α is next to nothing
	d.tell(t, 17, time.Millisecond)
	if r := d.at(t, 33); r >= line/dilation {
		t.Errorf("at %v", r)
	}
}

// Queue pairs come and go: whichever is connected to whichever, no two have the same flows, the numbers of those that are
// gone are given back, and a CNP limits the one that it was for.
func TestQueuePairsComeAndGoAndNoFlowIsLost(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 7))
		d := newDesk(t, 1000, nil)
		for range 3000 {
			qpn := 17 + rng.Uint32N(10)
			switch rng.IntN(5) {
			case 0:
				delete(d.qps, qpn)
			case 1:
				remote := 33 + rng.Uint32N(10)
				for l, r := range d.qps { // a queue pair is connected to one
					if r == remote {
						delete(d.qps, l)
					}
				}
				d.qps[qpn] = remote
			case 2:
				for _, f := range d.shelf.flows {
					f.sent += uint64(rng.IntN(5000))
					f.waiting = rng.IntN(3)
				}
			default:
				d.tell(t, qpn, believed+time.Duration(rng.IntN(100))*time.Millisecond)
				if remote, ok := d.qps[qpn]; ok {
					if r := d.at(t, remote); r >= line/dilation {
						t.Fatalf("seed %d: a CNP, and QP %#x goes at %v", seed, remote, r)
					}
				}
			}
		}
		for _, f := range d.shelf.flows {
			f.waiting = 0
		}
		clear(d.qps)
		d.pass(t, 2*lookAgain)
		if len(d.shelf.flows) > 0 || len(d.byQPN) > 0 || len(d.owner) > 0 || len(d.due) > 0 {
			t.Fatalf("seed %d: all queue pairs are gone; left: %d flows, %d reaction points, %d owners, %d due", seed, len(d.shelf.flows), len(d.byQPN), len(d.owner), len(d.due))
		}
	}
}

func TestOtherParametersHoldFromNowOnForFlowsThatThereAre(t *testing.T) {
	d := newDesk(t, 100, nil)
	d.qps[17] = 33
	d.tell(t, 17, time.Second)
	d.tell(t, 17, time.Millisecond)
	before := d.at(t, 33)
	handled := d.reaction.Counters.CNPHandled
	params := d.port.NIC.Params
	params.RPGTimeReset = time.Second // of fabric time
	if err := d.set(d.now, params); err != nil {
		t.Fatal(err)
	}
	d.port.NIC.Params = params
	d.pass(t, time.Minute) // 0.94 s
	if r := d.at(t, 33); r != before {
		t.Errorf("with a timer of a second it went from %v to %v in less", before, r)
	}
	if n := d.reaction.Counters.CNPHandled; n != handled || n != 2 {
		t.Errorf("%d CNPs were handled before the change and %d after it", handled, n)
	}
	d.pass(t, 10*time.Second)
	if r := d.at(t, 33); r <= before {
		t.Errorf("a second is over, and it is at %v still", r)
	}
	params.RPGMinRate = 20e9
	if err := d.set(d.now, params); err == nil {
		t.Error("a least rate beyond the line was taken")
	}
}

func TestLookUpsAreBelievedForAShortTime(t *testing.T) {
	d := newDesk(t, 100, nil)
	ask := func(want uint32) {
		t.Helper()
		if r, ok, err := d.peers.of(d.now, 17); err != nil || r != want || ok != (want != 0) {
			t.Errorf("QP 17 is connected to %d (%v, %v), not %d", r, ok, err, want)
		}
	}
	ask(0)
	d.qps[17] = 33
	ask(0)
	d.now += believed
	ask(33)
	d.qps[17] = 34
	ask(33)
	d.now += believed
	ask(34)
	if d.asked != 3 {
		t.Errorf("the kernel was asked %d times", d.asked)
	}
	for qpn := range uint32(3 * remembered) {
		if _, _, err := d.peers.of(d.now, qpn); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(d.peers.known); n > remembered {
		t.Errorf("%d look-ups are kept", n)
	}
}
