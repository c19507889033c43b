//go:build linux

package linux

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// SoftnetDrops is how many packets each CPU's backlog was too full for, since the machine booted.
func SoftnetDrops() (map[int]uint64, error) {
	b, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		return nil, err
	}
	drops := map[int]uint64{}
	for i, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			return nil, fmt.Errorf("/proc/net/softnet_stat: line %q has no drops", line)
		}
		n, err := strconv.ParseUint(fields[1], 16, 64)
		if err != nil {
			return nil, fmt.Errorf("/proc/net/softnet_stat: %w", err)
		}
		cpu := i
		if len(fields) > 12 { // the CPU's number, which skips those that are offline
			if k, err := strconv.ParseUint(fields[12], 16, 32); err == nil {
				cpu = int(k)
			}
		}
		drops[cpu] = n
	}
	return drops, nil
}

// NoSoftnetDropsSince says which CPUs have dropped packets since a reading: nil when none has.
func NoSoftnetDropsSince(before map[int]uint64) error {
	now, err := SoftnetDrops()
	errs := []error{err}
	for cpu, n := range now {
		if n > before[cpu] {
			errs = append(errs, fmt.Errorf("CPU %d dropped %d packets because its backlog was full", cpu, n-before[cpu]))
		}
	}
	return errors.Join(errs...)
}
