package asic

import (
	"testing"
	"unsafe"
)

// What a frame touches of a port that is idle, or whose queue it joins, should lie in as few cache lines of
// 64 bytes as it can, for at a thousand switches none of them is in the cache.
func TestHotFieldsBeginAtCacheLines(t *testing.T) {
	var p port
	var tab table
	for what, n := range map[string]uintptr{
		"a port": unsafe.Sizeof(p), "a port's counters of what came": unsafe.Offsetof(p.rxFrames), "those of what left": unsafe.Offsetof(p.tx),
		"what a waiting frame touches": unsafe.Offsetof(p.wake), "queues": unsafe.Offsetof(p.queues), "a queue": unsafe.Sizeof(p.queues[0]),
		"a table": unsafe.Sizeof(tab), "a table's queues": unsafe.Offsetof(tab.queues), "one of them": unsafe.Sizeof(tab.queues[0]),
	} {
		if n%64 != 0 {
			t.Errorf("%s: %d bytes, not whole cache lines", what, n)
		}
	}
}
