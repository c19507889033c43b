//go:build ibv && linux && cgo

package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs/ibv"
)

func TestRxe(t *testing.T) {
	if os.Getenv("SLICE") == "" {
		t.Skip()
	}
	epoch := time.Now()
	var loops [2]*loop.Real
	for i := range loops {
		loops[i] = loop.NewReal(1, epoch)
		defer loops[i].Close()
	}
	Run(t, Provider{
		Name:       "rxe",
		Departures: Rxe,
		Open: func(host int) (Endpoint, error) {
			d, err := ibv.Open(loops[host], fmt.Sprintf("rxe%d", host+1), ibv.Options{Dilation: 1})
			if err != nil {
				return Endpoint{}, err
			}
			for i, g := range d.GIDs() {
				if g.Is4In6() {
					return Endpoint{d, i, g}, nil
				}
			}
			return Endpoint{}, fmt.Errorf("no GID")
		},
		Wait: func(done <-chan struct{}) error {
			select {
			case <-done:
				return nil
			case <-time.After(4 * time.Second):
				return fmt.Errorf("nothing for 4s")
			}
		},
		Lose: func(f float64) (func() error, error) {
			out, err := exec.Command("ip", "netns", "exec", "sw", "tc", "qdisc", "add", "dev", "p2", "root", "netem", "loss", fmt.Sprintf("%f%%", f*100)).CombinedOutput()
			if err != nil {
				return nil, fmt.Errorf("%s", out)
			}
			return func() error {
				return exec.Command("ip", "netns", "exec", "sw", "tc", "qdisc", "del", "dev", "p2", "root").Run()
			}, nil
		},
	})
}
