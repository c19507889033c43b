package guest

import "time"

// The guest of an emulating QEMU reads the machine's own time stamp counter (cpu_get_ticks in
// softmmu/cpu-timers.c), and by itself finds out how fast that goes by counting against an
// emulated timer for some milliseconds. On a busy machine the emulator loses its processor in
// the midst of that, and the guest's clock goes wrong for good. The machine has the same
// counter and a clock that is right: it measures and tells the guest.

// tscMark is the counter at a moment.
type tscMark struct {
	at    time.Time
	count uint64
}

// tscTries is how often the counter is read for a mark: the reading during which least time
// passed counts, one that the processor was not taken away in.
const tscTries = 32

// tscSpan is the shortest time between two marks that a frequency is taken from. A mark is
// good to about 100 ns, so the frequency to 2 ppm.
const tscSpan = 100 * time.Millisecond

func markTSC() tscMark {
	var m tscMark
	least := time.Duration(-1)
	for range tscTries {
		before := time.Now()
		count := readTSC()
		if took := time.Since(before); least < 0 || took < least {
			least, m = took, tscMark{before.Add(took / 2), count}
		}
	}
	return m
}

// tscKHz is the counter's frequency between two marks in kHz; 0 where there is none.
func tscKHz(a, b tscMark) int {
	passed := b.at.Sub(a.at)
	if b.count <= a.count || passed <= 0 {
		return 0
	}
	return int(float64(b.count-a.count)/passed.Seconds()/1000 + 0.5)
}

// tscSince measures the counter since a mark, waiting until the mark is old enough.
func tscSince(a tscMark) int {
	if !hasTSC {
		return 0
	}
	if young := tscSpan - time.Since(a.at); young > 0 {
		time.Sleep(young)
	}
	return tscKHz(a, markTSC())
}
