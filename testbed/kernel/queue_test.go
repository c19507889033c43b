//go:build linux

package kernel

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

//	h1 ─┐
//	h2 ─┼─ leaf1 ── h3 …     two senders, one receiver
//
// The queue of the receiver's port holds what the senders have outstanding; with only one
// sender at the link's own rate it holds nothing, however long the cable is.
func TestPropagationDelayAndLossDoNotCountAsQueue(t *testing.T) {
	// In wall time: 4 ms a packet, so that a busy machine's hiccups are few packets; 60 ms on each
	// link, so that there are always 14 packets on a cable.
	const delay = 60 * time.Millisecond / time.Duration(testDilation)
	const frame = 4096 + 58
	marker := &fabric.ECNSettings{Marker: fabric.MarkerRED, KMin: 10 * frame, KMax: 30 * frame, PMax: 0.5}
	f := build(t, star(3, 500*topo.Mbps, delay), Config{Switches: fabric.SwitchSettings{SwitchModel: fabric.SwitchModel{ECN: marker}}})
	// Slower senders: a receiver's link that is exactly as fast never gets rid of what one hiccup
	// of the machine put there.
	inject(t, f, faults.Spec{Name: "slow", Kind: faults.RateLimit, Rate: 400 * topo.Mbps, At: []string{"leaf1:eth0", "leaf1:eth1"}, Direction: faults.Ingress})
	inject(t, f, faults.Spec{Name: "lossy", Kind: faults.Loss, EveryNth: 150, At: []string{"leaf1:eth2"}, Direction: faults.Egress})

	// With one sender, the cable is full and the queue is empty: nearly always, since a machine
	// that is busy elsewhere serves the queue late now and then.
	one := watch(t, f, func() { write(t, f, "h1", "h3", 1<<17, 4, 12, patient) })
	if one.often(func(s standing) bool { return s.cable >= 10*frame }) < 0.5 {
		t.Errorf("the cable was rarely full: %v", one)
	}
	if one.often(func(s standing) bool { return s.queue <= 5*frame }) < 0.8 {
		t.Errorf("packets stood in the port's queue with one sender: %v", one)
	}
	marked := func() float64 { return collect(t, f).of(t, "ecn_marked", "leaf1", "eth2", slotMark) }
	quiet := marked()
	if n := collect(t, f).of(t, "qdisc_drops", "leaf1", "eth2", slotQueue); n != 0 {
		t.Errorf("the port dropped %v packets; the cable should have", n)
	}

	// With two senders the excess stands in the queue, and is marked.
	done := make(chan struct{})
	two := watch(t, f, func() {
		go func() { defer close(done); write(t, f, "h2", "h3", 1<<17, 4, 12, patient) }()
		write(t, f, "h1", "h3", 1<<17, 4, 12, patient)
		<-done
	})
	if two.often(func(s standing) bool { return s.queue >= 10*frame }) < 0.3 {
		t.Errorf("few packets stood in the port's queue with two senders: %v", two)
	}
	if busy := marked() - quiet; busy <= 5*quiet {
		t.Errorf("%v packets were marked with a queue and %v without", busy, quiet)
	}
}

// standing is what stands towards the third host: in the port's queue and on the cable, bytes.
type standing struct{ queue, cable float64 }

type standings []standing

// often is the share of samples for which it holds, of those in which anything was on its way.
func (s standings) often(holds func(standing) bool) float64 {
	moving, n := 0, 0
	for _, x := range s {
		if x.queue+x.cable > 0 {
			moving++
			if holds(x) {
				n++
			}
		}
	}
	return float64(n) / float64(max(moving, 1))
}

// watch samples while work runs.
func watch(t *testing.T, f *Fabric, work func()) (s standings) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); work() }()
	for {
		select {
		case <-done:
			return s
		case <-time.After(5 * time.Millisecond):
		}
		r := collect(t, f)
		s = append(s, standing{r.of(t, "qdisc_backlog_bytes", "leaf1", "eth2", slotQueue), r.of(t, "qdisc_backlog_bytes", "leaf1", "eth2", slotDelay)})
	}
}

// strike is a fault in force, whose every answer is waited for.
type strike struct {
	t testing.TB
	a fabric.Applied
}

// inject applies and verifies a fault. It is healed and verified clean at the test's end, unless
// the test does that itself.
func inject(t testing.TB, f *Fabric, spec faults.Spec) *strike {
	t.Helper()
	if err := f.Injector().Check(spec); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		a   fabric.Applied
		err error
	}
	got := make(chan answer, 1)
	f.Injector().Apply(spec, func(a fabric.Applied, err error) { got <- answer{a, err} })
	r := <-got
	if r.err != nil {
		t.Fatal(r.err)
	}
	s := &strike{t, r.a}
	s.must("verify", r.a.Verify)
	t.Cleanup(func() { s.heal() })
	return s
}

func (s *strike) must(what string, call func(func(error))) {
	s.t.Helper()
	got := make(chan error, 1)
	call(func(err error) { got <- err })
	select {
	case err := <-got:
		if err != nil {
			s.t.Fatalf("%s: %v", what, err)
		}
	case <-time.After(30 * time.Second):
		s.t.Fatalf("%s: no answer", what)
	}
}

func (s *strike) hits() uint64 {
	s.t.Helper()
	var n uint64
	s.must("hits", func(done func(error)) { s.a.Hits(func(h uint64, err error) { n = h; done(err) }) })
	return n
}

func (s *strike) heal() {
	s.t.Helper()
	s.must("heal", s.a.Heal)
	s.must("verify clean", s.a.VerifyClean)
}
