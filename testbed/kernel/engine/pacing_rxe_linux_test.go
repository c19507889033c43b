//go:build linux

package engine

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/topo"
)

// A flow with a rate of its own keeps it while others use the rest of the line, begins behind what of it waits in the queue, and
// leaves without overtaking itself.
func TestAFlowIsPacedAndStaysInOrder(t *testing.T) {
	b := lay(t, func(p *Port) { p.Paced = true; p.Groups[3].Lossless = false })
	h2, got, sent := b.roce()
	number := byte(0)
	send := func(n int) {
		for range n { // RC WRITE only, to QP 0x123456
			number++
			packet := make([]byte, 1000)
			packet[0], packet[5], packet[6], packet[7], packet[11] = 10, 0x12, 0x34, 0x56, number
			if _, err := sent.Write(packet); err != nil {
				t.Fatal(err)
			}
		}
	}
	defer b.flood(8, 9)()
	b.until(toH2, "the line is full", func(r Reading) bool { return r.Queues[1].Bytes > 50_000 })
	send(40) // into the queue
	opened := Now()
	f, err := b.e.OpenFlow(FlowKey{Port: toH2, To: h2, QPN: 0x123456}, topo.Mbps)
	if err != nil {
		t.Fatal(err)
	}
	send(60)
	read := func() FlowReading {
		r, err := f.Read()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	sends := func(frames uint64) FlowReading {
		r := read()
		for deadline := time.Now().Add(20 * time.Second); r.TxFrames < frames; r = read() {
			if time.Now().After(deadline) {
				t.Fatalf("the flow doesn't send %d frames; last seen: %+v", frames, r)
			}
			<-tick.C
		}
		return r
	}
	a, at := sends(10), Now()
	sends(50)
	// What the machine was late is made up for, so that never more has gone than the rate allows since the flow began.
	gone, now := read().TxBytes, Now()
	least, most := float64(gone-a.TxBytes)*8/(now-at).Seconds(), float64(gone)*8/(now-opened).Seconds()
	if least < 0.8e6 || most > 1.02e6 {
		t.Errorf("a flow of 1 Mb/s was given %.3f Mb/s, and altogether %.3f", least/1e6, most/1e6)
	}
	closed := false
	for deadline := time.Now().Add(20 * time.Second); !closed && time.Now().Before(deadline); <-tick.C {
		if closed, err = f.Close(); err != nil {
			t.Fatal(err)
		}
		if number < 130 {
			send(1)
		}
	}
	if !closed {
		t.Fatal("the flow never closed")
	}
	send(10)
	for want := byte(1); want <= number; want++ {
		buf := make([]byte, 2000)
		_ = got.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, _, err := got.ReadFrom(buf); err != nil {
			t.Fatalf("packet %d of %d: %v", want, number, err)
		}
		if buf[11] != want {
			t.Fatalf("packet %d came where %d was due", buf[11], want)
		}
	}
}

// What a queue pair asks for and what it answers have one rate between them, as they have in a NIC; each goes on by itself when the other has nothing.
func TestRequestsAndResponsesOfAQueuePairShareItsRate(t *testing.T) {
	b := lay(t, func(p *Port) {
		p.Paced = true
		for i := range p.Queues {
			p.Queues[i].Reserved = 1_000_000
		}
	})
	h2, _, sent := b.roce()
	const rate = topo.Mbps
	f, err := b.e.OpenFlow(FlowKey{Port: toH2, To: h2, QPN: 7}, rate)
	if err != nil {
		t.Fatal(err)
	}
	const write, response = 10, 14 // RC WRITE only, READ response middle
	send := func(opcode byte, n int) {
		packet := make([]byte, 1000)
		packet[0], packet[7] = opcode, 7
		for range n {
			if _, err := sent.Write(packet); err != nil {
				t.Fatal(err)
			}
		}
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	sends := func(frames uint64) (FlowReading, time.Duration) {
		for deadline := time.Now().Add(20 * time.Second); ; <-tick.C {
			r, err := f.Read()
			if err != nil {
				t.Fatal(err)
			}
			if r.TxFrames >= frames {
				return r, Now()
			}
			if time.Now().After(deadline) {
				t.Fatalf("the queue pair doesn't send %d frames; last seen: %+v", frames, r)
			}
		}
	}
	for _, c := range []struct {
		writes, responses int
		share             float64 // of what is sent, the responses'
	}{{60, 60, 0.5}, {0, 60, 1}, {60, 0, 0}} {
		start, opened := sends(0)
		send(write, c.writes)
		send(response, c.responses)
		first, at := sends(start.TxFrames + 10)
		last, now := sends(start.TxFrames + 50) // neither has nothing left
		gone := float64(last.TxBytes - first.TxBytes)
		least, most := gone*8/(now-at).Seconds(), float64(last.TxBytes-start.TxBytes)*8/(now-opened).Seconds()
		if least < 0.8*float64(rate) || most > 1.05*float64(rate) {
			t.Errorf("%d WRITEs and %d responses of a queue pair of 1 Mb/s were given %.3f Mb/s, and altogether %.3f", c.writes, c.responses, least/1e6, most/1e6)
		}
		if share := float64(last.ResponsesTxBytes-first.ResponsesTxBytes) / gone; share < c.share-0.1 || share > c.share+0.1 {
			t.Errorf("of %d WRITEs and %d responses %.2f of what was sent were responses", c.writes, c.responses, share)
		}
		sends(start.TxFrames + uint64(c.writes+c.responses))
	}
}
