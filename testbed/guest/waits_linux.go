package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Waits is how long the guest's threads have run on this machine's processors, and how long they were ready
// to but waited, because others ran there (/proc/PID/task/*/schedstat). It is not ok where the
// kernel doesn't say, or another process holds the guest.
func (g *Guest) Waits() (ran, waited time.Duration, ok bool) {
	if g.vm == nil {
		return 0, 0, false
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", g.vm.pid))
	for _, t := range tasks {
		raw, err := os.ReadFile(t)
		if err != nil {
			continue // the thread has ended
		}
		var run, wait time.Duration
		if _, err := fmt.Sscan(string(raw), (*int64)(&run), (*int64)(&wait)); err != nil {
			continue
		}
		ran, waited, ok = ran+run, waited+wait, true
	}
	return ran, waited, ok
}
