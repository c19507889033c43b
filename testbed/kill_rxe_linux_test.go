package testbed

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/internal/testneed"
)

func TestARunOnRxeThatIsKilledAtAnyMomentLeavesNothingOnceCleaned(t *testing.T) {
	testneed.Rxe(t)
	killAtRandom(t, Kernel, 8, 8*time.Second)
}

func TestARunOnRxeThatIsInterruptedAtAnyMomentHealsAndSealsItsRecord(t *testing.T) {
	testneed.Rxe(t)
	interruptAtRandom(t, Kernel, 3, 14*time.Second)
}
