package rnic

import (
	"strings"
	"testing"

	"github.com/rocebed/rocebed/datapath/loop"
)

func TestATimelineShowsWhenAMessagesPacketsPassedEachStage(t *testing.T) {
	r := &TraceRecorder{Name: "h1:rnic0"}
	for i := range 4 {
		r.Trace(TraceEvent{At: 1100, QPN: 17, Message: 3, Stage: StageDMARead, Bytes: 1024})
		r.Trace(TraceEvent{At: 1000 + 100*loop.Time(i), QPN: 17, Message: 3, Stage: StageWire, Bytes: 1024})
	}
	r.Trace(TraceEvent{At: 900, QPN: 17, Message: 3, Stage: StagePost})
	m := r.Message(17, false, 3)
	if m == nil {
		t.Fatal("no trace")
	}
	w := m.Stages[StageWire]
	if w.First != 1000 || w.Last != 1300 || w.Count != 4 || w.Bytes != 4096 || m.Stages[StagePacing].Count != 0 {
		t.Errorf("wire %+v", w)
	}
	text := r.String()
	for _, want := range []string{"h1:rnic0: QP 0x11, message 3 sent, began at 900ns", "post", "0s", "wire           4  100ns       400ns"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "pacing") {
		t.Error("a stage that no packet passed is shown")
	}
}

func TestARecorderKeepsTheFirstMessagesAndCountsTheRest(t *testing.T) {
	r := &TraceRecorder{Limit: 2}
	for m := range uint64(5) {
		r.Trace(TraceEvent{QPN: 1, Message: m})
		r.Trace(TraceEvent{QPN: 1, Message: m, Stage: StageCQE})
	}
	if len(r.Messages()) != 2 || r.Missed() != 6 || r.Message(1, false, 1) == nil || r.Message(1, false, 2) != nil {
		t.Errorf("%d kept, %d missed", len(r.Messages()), r.Missed())
	}
}

func TestEveryStageHasAName(t *testing.T) {
	seen := map[string]bool{}
	for s := range stages {
		if n := s.String(); n == "" || seen[n] {
			t.Errorf("stage %d is %q", s, n)
		}
		seen[s.String()] = true
	}
	if stages.String() != "Stage(14)" {
		t.Errorf("beyond the last: %v", stages)
	}
}
