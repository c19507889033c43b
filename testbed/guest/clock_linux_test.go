package guest

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// at is a reading at machine time t that took width; the guest answered in its middle.
func at(t, width, guest time.Duration) clockReading {
	return clockReading{sent: t - width/2, got: t + width/2, guest: guest}
}

func TestAClockIsJudgedByWhatTwoReadingsProve(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, c := range []struct {
		name string
		a, b clockReading
		want clockVerdict
	}{
		{"the same pace", at(0, ms, 7*s), at(s, ms, 8*s), clockGood},
		{"half a percent fast", at(0, ms, 0), at(s, ms, 1005*ms), clockGood},
		{"2 percent fast", at(0, ms, 0), at(s, ms, 1020*ms), clockOff},
		{"2 percent slow", at(0, ms, 0), at(s, ms, 980*ms), clockOff},
		{"2 percent fast, as far as slow answers tell", at(0, 30*ms, 0), at(s, 30*ms, 1020*ms), clockUnknown},
		{"the same pace, as far as slow answers tell", at(0, 30*ms, 0), at(s, 30*ms, s), clockUnknown},
		{"2 percent fast for long enough", at(0, 30*ms, 0), at(10*s, 30*ms, 10200*ms), clockOff},
		{"readings that overlap", at(0, s, 0), at(s/2, s, s/2), clockUnknown},
		{"more passed than overlapping readings have room for", at(0, s, 0), at(s/2, s, 2*s), clockOff},
		{"a clock that stands", at(0, ms, s), at(s, ms, s), clockOff},
		{"404 s in 180 s", at(0, s, 0), at(180*s, s, 404*s), clockOff},
	} {
		if got := judgeClock(c.a, c.b); got != c.want {
			lo, hi := bounds(c.a, c.b)
			t.Errorf("%s: verdict %d, want %d; ratio between %.4f and %.4f", c.name, got, c.want, lo, hi)
		}
	}
}

func TestNoHonestClockIsEverCalledOff(t *testing.T) {
	// Wherever within the time of a question the guest looked at its clock, one that goes
	// right is not called off.
	for _, width := range []time.Duration{time.Microsecond, time.Millisecond, 700 * time.Millisecond, 20 * time.Second} {
		for _, gap := range []time.Duration{0, time.Millisecond, time.Second, time.Minute} {
			for _, early := range []time.Duration{0, width / 2, width} {
				for _, late := range []time.Duration{0, width / 2, width} {
					a := clockReading{sent: 0, got: width, guest: early}
					b := clockReading{sent: width + gap, got: 2*width + gap, guest: width + gap + late}
					if judgeClock(a, b) == clockOff {
						t.Errorf("width %v, gap %v, answers at %v and %v: called off", width, gap, early, late)
					}
				}
			}
		}
	}
}

func TestTheWatchSeesADriftAndAJump(t *testing.T) {
	const s = time.Second
	drift, jump, good := newClockWatch(), newClockWatch(), newClockWatch()
	for _, w := range []*clockWatch{drift, jump, good} {
		w.begin(at(0, s/100, 0))
	}
	for i := time.Duration(1); i <= 100; i++ {
		drift.add(at(i*s, s/10, i*s*102/100)) // no two neighbours prove it
		gone := i * s
		if i > 99 {
			gone += s / 2 // half a second of a hundred
		}
		jump.add(at(i*s, s/100, gone))
		good.add(at(i*s, s/10, i*s))
	}
	if c := drift.report(); !strings.Contains(c.Problem, "fast") || math.Abs(c.Ratio-1.02) > 0.002 {
		t.Errorf("a drift: %+v", c)
	}
	if c := jump.report(); !strings.Contains(c.Problem, "fast") || math.Abs(c.Ratio-1.005) > 0.001 {
		t.Errorf("a jump: %+v", c)
	}
	if c := good.report(); c.Problem != "" || math.Abs(c.Ratio-1) > c.Uncertainty || c.Uncertainty > 0.001 || c.Over < 99*s {
		t.Errorf("a good clock: %+v", c)
	}
}

func TestTheCounterIsMeasuredBetweenTwoMarks(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		a, b tscMark
		want int
	}{
		{tscMark{now, 1000}, tscMark{now.Add(time.Second), 1000 + 2_596_122_000}, 2596122},
		{tscMark{now, 1000}, tscMark{now.Add(time.Second), 1000}, 0},
		{tscMark{now, 1000}, tscMark{now, 2000}, 0},
	} {
		if got := tscKHz(c.a, c.b); got != c.want {
			t.Errorf("%v to %v: %d kHz, want %d", c.a, c.b, got, c.want)
		}
	}
	if !hasTSC {
		if tscSince(markTSC()) != 0 {
			t.Error("a frequency without a counter")
		}
		return
	}
	// Two measurements of the real thing agree: it is the same counter on every processor.
	one, two := tscSince(markTSC()), tscSince(markTSC())
	if one < 100_000 || math.Abs(float64(one-two)) > float64(one)/1000 {
		t.Errorf("measured %d kHz and %d kHz", one, two)
	}
}

func TestOnlyAnEmulatedGuestIsToldItsCounter(t *testing.T) {
	for _, c := range []struct {
		s    shape
		want bool
	}{{shape{accel: "tcg", tscKHz: 2596122}, true}, {shape{accel: "kvm", tscKHz: 2596122}, false}, {shape{accel: "tcg"}, false}} {
		if got := strings.Contains(c.s.kernelLine(), "tsc_early_khz=2596122"); got != c.want {
			t.Errorf("%s, %d kHz: %s", c.s.accel, c.s.tscKHz, c.s.kernelLine())
		}
	}
}

func TestABootWhoseClockIsOffIsTriedAgainAndReported(t *testing.T) {
	g := boot(t, Config{Accel: "tcg", tscKHz: func(failed, khz int) int {
		return []int{khz / 2, khz * 2, khz}[failed] // fast, slow, right
	}})
	if len(g.Report.Failed) != 2 {
		t.Fatalf("reported: %+v", g.Report.Failed)
	}
	for i, way := range []string{"fast", "slow"} {
		if !strings.Contains(g.Report.Failed[i].Reason, ErrClock.Error()) || !strings.Contains(g.Report.Failed[i].Reason, "runs "+way) {
			t.Errorf("boot %d, whose clock is %s: %s", i+1, way, g.Report.Failed[i].Reason)
		}
	}
	if c := g.Clock(); c.Problem != "" || math.Abs(c.Ratio-1) > c.Uncertainty+0.001 || c.Over <= 0 {
		t.Errorf("the clock of the third boot: %+v", c)
	}
}

func TestTheGuestGoesByTheMachinesMeasurement(t *testing.T) {
	g := boot(t, Config{Accel: "tcg"})
	if g.Report.TSCKHz < 100_000 {
		t.Errorf("told %d kHz", g.Report.TSCKHz)
	}
	if c := g.Report.Clock; math.Abs(c.Ratio-1) > c.Uncertainty || c.Over <= 0 {
		t.Errorf("the clock at hello: %+v", c)
	}
	// The kernel names the TSC apart from the processor where its own calibration came to another figure.
	want := fmt.Sprintf("tsc: Detected %d.%03d MHz ", g.Report.TSCKHz/1000, g.Report.TSCKHz%1000)
	if _, out, _ := sh(t, g, "dmesg | grep tsc:; cat /sys/devices/system/clocksource/clocksource0/current_clocksource; sed -n s/^bogomips.*:.//p /proc/cpuinfo | sort -u | wc -l"); !strings.Contains(out, want) || !strings.Contains(out, "tsc") || !strings.HasSuffix(out, "\n1\n") {
		t.Errorf("want %q, clocksource tsc and equal delay loops on all processors; the guest says:\n%s", want, out)
	}
}

func TestAClockThatGoesWrongWhileTheGuestLivesIsReported(t *testing.T) {
	g := boot(t, Config{})
	// The guest's clock can't be made to run wrong from here, but the machine's view of it can:
	// the boot's reading is taken for one of a second earlier.
	g.clock.mu.Lock()
	g.clock.first.guest -= time.Second
	g.clock.last.guest -= time.Second
	g.clock.mu.Unlock()
	if c := g.Clock(); !strings.Contains(c.Problem, "the guest's clock runs fast") {
		t.Errorf("%+v", c)
	}
}
