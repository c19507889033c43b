package guest

import "time"

// Waits is what the threads of a guest got of this machine's processors, in wall time.
type Waits struct {
	Ran    time.Duration `json:"ran_ns"`
	Waited time.Duration `json:"waited_ns"` // ready to run, while others did
}

// Since is what came after an earlier reading.
func (w Waits) Since(before Waits) Waits {
	return Waits{Ran: w.Ran - before.Ran, Waited: w.Waited - before.Waited}
}

// Share is the part of the time that they could have run for which they waited, 0 to 1.
func (w Waits) Share() float64 {
	return w.Waited.Seconds() / max((w.Ran+w.Waited).Seconds(), 1e-9)
}
