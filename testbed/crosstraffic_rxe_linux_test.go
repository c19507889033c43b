package testbed

import (
	"testing"

	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel/nldev"
	"github.com/rocebed/rocebed/testbed/linux"
)

func TestOnRxeTrafficBesideIsTheKernels(t *testing.T) {
	testneed.Rxe(t)
	runBeside(t, Kernel)
}

func TestOnRxeHealedTrafficLeavesNoQueuePairAndNoSocket(t *testing.T) {
	testneed.Rxe(t)
	leavesNothing(t, Kernel, func(f fabric.Fabric) int {
		n := 0
		err := f.(interface{ Wiring() *linux.Wiring }).Wiring().Node("h2").Do(func() error {
			c, err := nldev.Open()
			if err != nil {
				return err
			}
			defer c.Close()
			devices, err := c.Devices()
			if err != nil {
				return err
			}
			for _, d := range devices {
				all, err := c.QPs(d)
				if err != nil {
					return err
				}
				for _, q := range all {
					if q.Num > 1 { // 1 is the device's own
						n++
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	})
}
