package agent

import (
	"testing"
	"time"
)

func TestEveryPauseIsEndedWhoeverToldIt(t *testing.T) {
	p := &pausing{}
	now := time.Millisecond
	if p.speaks(now, 3, false) {
		t.Error("a frame for a pause that nobody was told of")
	}
	p.alone[3] = true
	if !p.speaks(now, 3, false) {
		t.Error("the kernel told the peer to pause, and it is not told that it is over")
	}
	if p.speaks(now, 3, false) {
		t.Error("it is told so twice")
	}
	p.alone[3] = true
	if !p.speaks(now, 3, true) || p.speaks(now, 3, true) {
		t.Error("a pause that goes on isn't repeated once by the agent, which refreshes it from then on")
	}
	if !p.speaks(now, 3, false) || p.state.Began[3] != 2 {
		t.Errorf("not ended, or %d pauses counted of 2", p.state.Began[3])
	}
}
