package testbed

import (
	"testing"

	"github.com/rocebed/rocebed/internal/testneed"
)

func TestFaultsWaitForEventsOnRxe(t *testing.T) {
	testneed.Rxe(t)
	eventsComeInRealTime(t, Kernel)
}
