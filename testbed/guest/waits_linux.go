package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Waits is what the guest's threads got of this machine's processors until now (/proc/PID/task/*/schedstat). It is not
// ok where the kernel doesn't say, or another process holds the guest.
func (g *Guest) Waits() (w Waits, ok bool) {
	if g.vm == nil {
		return w, false
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
		w.Ran, w.Waited, ok = w.Ran+run, w.Waited+wait, true
	}
	return w, ok
}
