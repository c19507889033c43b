//go:build !(ibv && linux && cgo)

package ibv

import (
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// Available says whether this binary has libibverbs in it.
const Available = false

// Open fails: this binary was built without libibverbs.
func Open(_ loop.Loop, deviceName string, _ Options) (verbs.Device, error) {
	return nil, fmt.Errorf("%s: open: %w", deviceName, ErrNotBuilt)
}

// Devices fails: this binary was built without libibverbs.
func Devices() ([]string, error) { return nil, ErrNotBuilt }
