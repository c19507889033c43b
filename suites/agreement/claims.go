package agreement

import (
	"fmt"
	"math"
	"slices"
)

// bottleneck is what a receiver's link carries of payload: a packet of 4096 bytes is 4178 on the line, preamble, check sequence and gap included.
const bottleneck = float64(Rate) * 4096 / 4178

// Claim is what the mechanisms must do on every backend by itself.
type Claim struct {
	Text string `json:"text"`
	Held bool   `json:"held"`
	Saw  string `json:"saw"`
}

// Claims judges a backend's figures of a scene, by mode. What is missing is claimed of nothing.
func Claims(by map[Mode]*Figures) (all []Claim) {
	claim := func(held bool, saw, format string, args ...any) {
		all = append(all, Claim{fmt.Sprintf(format, args...), held, saw})
	}
	both, pfc, neither := by[Both], by[PFC], by[Neither]
	if neither != nil {
		claim(neither.Drops > 0 && neither.Retries > 0, fmt.Sprintf("%.0f drops, %.0f retransmissions", neither.Drops, neither.Retries), "with neither, packets are dropped and sent again")
	}
	if pfc != nil {
		claim(pfc.Drops == 0 && pfc.Retries == 0 && pfc.Pauses > 0, fmt.Sprintf("%.0f drops, %.0f retransmissions, %.0f pauses", pfc.Drops, pfc.Retries, pfc.Pauses), "PFC alone pauses and loses nothing")
	}
	if both != nil {
		claim(both.Drops == 0 && both.Retries == 0, fmt.Sprintf("%.0f drops, %.0f retransmissions", both.Drops, both.Retries), "with both, nothing is lost")
	}
	if both != nil && pfc != nil {
		claim(both.Pauses <= 0.1*pfc.Pauses, fmt.Sprintf("%.0f pauses instead of %.0f", both.Pauses, pfc.Pauses), "DCQCN takes 90 %% of the pauses away, or more")
	}
	if both == nil {
		return all
	}
	switch scene := both.Scene; {
	case scene == victim && pfc != nil:
		last := len(both.Goodput) - 1
		claim(both.Goodput[last] > 1.6*pfc.Goodput[last], fmt.Sprintf("%.2f Gb/s, %.2f with PFC alone", both.Goodput[last]/1e9, pfc.Goodput[last]/1e9), "the victim gets its share back: 1.6 times what PFC alone leaves it, or more")
	case scene != victim && scene != parking:
		used := both.sum() / bottleneck
		claim(used >= 0.9, fmt.Sprintf("%.0f %%", 100*used), "with both, the bottleneck is used to 90 %% or more")
		fair := both.sum() / float64(len(both.Goodput))
		off := math.Max(slices.Max(both.Goodput)/fair-1, 1-slices.Min(both.Goodput)/fair)
		claim(off <= 0.3, fmt.Sprintf("%.0f %%", 100*off), "with both, no share is off its fair one by more than 30 %%")
	}
	return all
}
