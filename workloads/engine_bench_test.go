package workloads

import (
	"fmt"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

// BenchmarkEngine is what the engine itself costs a byte of WRITE, with and without making and
// checking payloads, over queue pairs in memory (which copy each byte twice).
func BenchmarkEngine(b *testing.B) {
	const size, messages = 64 << 10, 200
	for _, verify := range []bool{true, false} {
		b.Run(fmt.Sprintf("verify=%v", verify), func(b *testing.B) {
			b.SetBytes(size * messages)
			for b.Loop() {
				v := loop.NewVirtual(time.Microsecond)
				m := benchOn(b, 2, 1, 1, func(host int) loop.Loop { return v.Node(uint32(host)) })
				e, err := NewEngine(m.cfg, specs(b, fmt.Sprintf("[{name: w, kind: write, from: [h1], to: [h2], size: 64KiB, messages: %d, verify: %v}]", messages, verify)))
				if err != nil {
					b.Fatal(err)
				}
				var r *Report
				e.Start(func(done *Report) { r = done })
				v.Run(func() bool { return r != nil })
				if r == nil || !r.Passed() {
					b.Fatalf("failed: %+v", r)
				}
			}
		})
	}
}
