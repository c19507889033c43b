//go:build linux

package kernel

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// cpuTimes are what the machine's processors did since it booted, in ticks of wall time, all of them together.
type cpuTimes struct{ all, idle, steal uint64 }

// readCPUTimes reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal, and guest
// times, which user and nice hold already.
func readCPUTimes() (cpuTimes, error) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpuTimes{}, err
	}
	return parseCPUTimes(string(raw))
}

func parseCPUTimes(stat string) (t cpuTimes, err error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return t, fmt.Errorf("/proc/stat: %q is not eight times of all CPUs", line)
	}
	for i, f := range fields[1:9] {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return t, fmt.Errorf("/proc/stat: %w", err)
		}
		t.all += n
		switch i {
		case 3, 4:
			t.idle += n
		case 7:
			t.steal += n
		}
	}
	return t, nil
}

// since are the parts of the time since another reading that the processors idled, and that others took from this machine, 0 to
// 1. It is not ok where no time has passed.
func (t cpuTimes) since(before cpuTimes) (idle, steal float64, ok bool) {
	if t.all <= before.all {
		return 0, 0, false
	}
	part := func(now, then uint64) float64 {
		if now < then { // idle time is an estimate, and may go back
			return 0
		}
		return min(float64(now-then)/float64(t.all-before.all), 1)
	}
	return part(t.idle, before.idle), part(t.steal, before.steal), true
}

// processors are the metrics of them.
func (c *collector) processors() {
	now, err := readCPUTimes()
	c.failed(err)
	c.f.mu.Lock()
	before := c.f.base.cpus
	c.f.mu.Unlock()
	if idle, steal, ok := now.since(before); err == nil && ok {
		c.add("cpu_idle_share", idle)
		c.add("cpu_steal_share", steal)
	}
}
