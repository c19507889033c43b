package testbed

import "fmt"

// starvedShare is the part of the time that a guest's processors may wait for this machine's before results
// carry a warning. Up to 0.41 ports carried 0.98 of their rate and more, at 0.48 to 0.54 0.90 to 0.95, at 0.67 0.65 to 0.77
// (docs/dilation.md).
const starvedShare = 0.5

// starved says that the guest did not get the processors that it was ready to use, where they waited for such a part of the time.
// What it measured of rates and latencies is then the machine's: loops can be in time while ports forward late.
func starved(share float64) string {
	if share < starvedShare {
		return ""
	}
	return fmt.Sprintf("other programs kept this machine busy: the guest's processors waited %.0f%% of the time that they could have run. "+
		"Links then carry less than their rate and take longer; bytes and counters hold", share*100)
}
