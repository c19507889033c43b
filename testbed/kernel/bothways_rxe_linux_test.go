//go:build linux

package kernel

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// h1's queue pair WRITEs to h2's, which READs from it: h1 sends requests and READ responses, and what both take together is the queue pair's rate.
func TestWhatAQueuePairAsksAndAnswersHasOneRate(t *testing.T) {
	f := build(t, star(2, 10*topo.Gbps, time.Microsecond), Config{NICs: fabric.NICSettings{NICModel: fabric.NICModel{DCQCN: &fabric.DCQCNSettings{Profile: "paper"}}}})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	writes, err := newTransfer(ctx, f.hostNamed(t, "h1"), f.hostNamed(t, "h2"), 1<<18, 4, patient, testRetries)
	if err != nil {
		t.Fatal(err)
	}
	reads := &transfer{src: writes.dst, dst: writes.src, size: 1 << 18, depth: 2, reads: true}
	const rate = 4 * topo.Mbps // 119 packets a second: no machine is too busy for that
	h2, _ := f.Plan().Port(topo.PortRef{Node: "h2", Port: "eth0"})
	flow, err := f.engine.OpenFlow(engine.FlowKey{Port: f.numbers[topo.PortRef{Node: "h1", Port: "eth0"}], To: h2.Addr.Addr(), QPN: writes.dst.qp.Num()}, rate)
	if err != nil {
		t.Fatal(err)
	}
	sent := sentBytes(t, f)
	run, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 2)
	for _, e := range []*endpoint{writes.src, writes.dst} {
		e.onCompletion = func(verbs.WC) {} // each transfer sets its own end's
	}
	for _, x := range []*transfer{writes, reads} {
		go func() {
			_, _, err := x.run(run, 0, 6*time.Second)
			ended <- err
		}()
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	read := func() engine.FlowReading {
		<-tick.C
		r, err := flow.Read()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := read()
	for first.ResponsesTxBytes == 0 || first.ResponsesTxBytes == first.TxBytes {
		first = read()
	}
	before, begun, last := sent(), time.Now(), first
	for time.Since(begun) < 4*time.Second {
		last = read()
	}
	total, took := 8*(sent()-before), time.Since(begun)
	responses := float64(last.ResponsesTxBytes-first.ResponsesTxBytes) / float64(last.TxBytes-first.TxBytes)
	t.Logf("a queue pair of 4 Mb/s sent %.2f Mb/s, %.0f %% of it READ responses", total/took.Seconds()/1e6, 100*responses)
	if share := total / took.Seconds() / float64(rate); share > 1.2 { // sixteen packets that the machine was late are made up for
		t.Errorf("it sent %.2f times its rate", share)
	}
	if responses < 0.3 || responses > 0.7 {
		t.Errorf("%.2f of it was READ responses", responses)
	}
	if err := errors.Join(<-ended, <-ended, writes.close(ctx), f.localDrops()); err != nil {
		t.Error(err)
	}
}
