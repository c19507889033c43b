package ibv

import (
	"fmt"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// rxeJiffy is what rxe rounds its timers to: a jiffy at CONFIG_HZ=250, which Debian's
// kernels have (drivers/infiniband/sw/rxe/rxe_qp.c, nsecs_to_jiffies).
const rxeJiffy = 4 * time.Millisecond

// wallTimeout is the device's local ACK timeout exponent for one in fabric time.
func wallTimeout(exponent uint8, d loop.Dilation) (uint8, error) {
	if exponent > verbs.MaxTimeout {
		return 0, fmt.Errorf("timeout %d: the exponent has 5 bits, at most %d", exponent, verbs.MaxTimeout)
	}
	if exponent == 0 {
		return 0, nil
	}
	wall := int(exponent) + d.Exponent()
	if wall > verbs.MaxTimeout {
		return 0, fmt.Errorf("timeout %d at dilation %v needs exponent %d and the device has 5 bits: the largest timeout at this dilation is %d, the largest dilation with this timeout is %d",
			exponent, d, wall, max(verbs.MaxTimeout-d.Exponent(), 0), uint32(1)<<(verbs.MaxTimeout-exponent))
	}
	return uint8(wall), nil
}

// fabricTimeout undoes wallTimeout.
func fabricTimeout(wall uint8, d loop.Dilation) uint8 {
	return uint8(max(int(wall)-d.Exponent(), 0))
}

// wallRNRTimer is the device's RNR timer code for one in fabric time, and what is to be said
// about it if its delay is not exactly the dilated one. It rounds up where the table goes on.
func wallRNRTimer(code uint8, d loop.Dilation) (wall uint8, note string, err error) {
	if int(code) >= len(verbs.RNRDelay) {
		return 0, "", fmt.Errorf("RNR timer %d: the code has 5 bits, at most 31", code)
	}
	want := d.Wall(verbs.RNRDelay[code])
	wall, exact, _ := verbs.RNRTimerFor(want)
	if !exact {
		got := verbs.RNRDelay[wall]
		note = fmt.Sprintf("RNR delay %v at dilation %v is %v of wall time, the device takes %v (%v of fabric time)",
			verbs.RNRDelay[code], d, want, got, d.Fabric(got))
	}
	return wall, note, nil
}

// shortForRxe says when a wall time is too short for rxe's timers.
func shortForRxe(what string, wall time.Duration, d loop.Dilation) string {
	if wall == 0 || wall >= rxeJiffy {
		return ""
	}
	return fmt.Sprintf("%s is %v of wall time, and rxe's timers tick every %v: it will be late by up to %v of fabric time; a larger dilation helps",
		what, wall, rxeJiffy, d.Fabric(rxeJiffy))
}
