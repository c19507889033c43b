//go:build linux

package cable

import (
	"fmt"
	"testing"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/internal/testneed"
)

// What packet events cost a packet of 1 KiB that none of them hits, in the kernel, by how many events look at it: those that compare PSNs and
// passes, as a Lumina schedule's do. With none about its connection, and for a stage of another kind to compare with.
func BenchmarkEventsPerPacket(b *testing.B) {
	testneed.Root(b)
	q := roce.Packet{TTL: 64, Src: host(0), Dst: host(2), SrcPort: 50000, Payload: make([]byte, 1024), PayloadLen: 1024,
		BTH: roce.BTH{DestQP: 0x12, Opcode: roce.RCRDMAWriteMiddle, PSN: 1 << 20}}
	in, err := q.Append(nil)
	if err != nil {
		b.Fatal(err)
	}
	c := packet.Connection{Workload: "w", To: packet.End{Addr: host(2), QPN: 0x12}, From: packet.End{Addr: host(0), QPN: 0x11}}
	run := func(name string, s *Stage) {
		b.Run(name, func(b *testing.B) {
			_, took, err := s.prog.Benchmark(in, b.N, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(took.Nanoseconds()), "ns/packet")
		})
	}
	for _, n := range []int{0, 1, 16, 256} {
		events := make([]packet.Event, max(n, 1))
		for i := range events {
			m := packet.Match{Workload: "w", QP: packet.Set{{From: 0, To: 0}}, PSN: packet.Set{{From: uint32(i), To: uint32(i)}}, Iteration: packet.Set{{From: 1, To: 3}}}
			if n == 0 {
				m.Workload = "another"
			}
			events[i] = packet.Event{Match: m, Do: packet.Do{{Verb: packet.Drop}}}
		}
		p, err := packet.Compile(events, 1)
		if err != nil {
			b.Fatal(err)
		}
		run(fmt.Sprintf("events=%d", n), eventsStage(b, p, []packet.Connection{c}))
	}
	f, err := newForwarder(1)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	s, err := newStage(f, RandomLoss{1e-9}, 1, 1)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	run("random loss", s)
}
