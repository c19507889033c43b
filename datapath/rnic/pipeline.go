package rnic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// pipeline is the device's stages: when work that is given to them now is done.
type pipeline struct{}

// doorbell is when a WQE that is posted now can be worked on.
func (h *pipeline) doorbell(now loop.Time) loop.Time { return now }

// transmit is when the payload of a packet that is made now is there.
func (h *pipeline) transmit(now loop.Time, f *link.Frame, kind verbs.MemoryKind) loop.Time {
	return now
}

// receive is when a packet that arrived now has been processed.
func (h *pipeline) receive(now loop.Time, f *link.Frame) loop.Time { return now }
