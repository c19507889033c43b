// Package ibv is the verbs provider on libibverbs: rxe in the kernel backend, and a real
// NIC in the same way.
//
// It needs cgo, libibverbs' headers (Debian: libibverbs-dev) and the build tag ibv; without
// them Open fails and says so, and everything else builds.
//
// A device's blocking calls (register, create, modify, query, destroy) run one after the
// other on a goroutine of its own. One goroutine for the process waits on all completion
// channels and asynchronous event descriptors, and posts to each loop what has arrived, in
// batches. Posting and polling happen on the loop, with one crossing into C a call, and
// all memory that the device or C sees is outside the Go heap.
//
// Times are fabric time at the interface and wall time in the device: a local ACK timeout
// grows by log2 of the dilation, an RNR delay is looked up anew. What has no exact image is
// refused, or rounded with a warning.
package ibv

import (
	"errors"

	"github.com/rocebed/rocebed/datapath/loop"
)

// Options are how a device is opened. The zero value runs at wall time and warns nobody.
type Options struct {
	// Dilation is the fabric's. The loop's must be the same.
	Dilation loop.Dilation
	// Label is what errors and warnings call the device: the port that it is, such as h1:eth0.
	// Empty: the device's name.
	Label string
	// Warn is told, on the loop, about what was rounded: one sentence naming device, QP and attribute.
	Warn func(string)
}

// ErrNotBuilt is why Open fails in a binary without libibverbs.
var ErrNotBuilt = errors.New("this binary was built without libibverbs: install its headers (Debian: libibverbs-dev) and a C compiler, then build with CGO_ENABLED=1 and -tags ibv")
