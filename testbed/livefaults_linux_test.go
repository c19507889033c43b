package testbed

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/fabric"
)

// liveOnSoft is a fabric of software nodes that is up, and what puts faults on it.
func liveOnSoft(t *testing.T) *LiveFaults {
	t.Helper()
	testneed.Root(t)
	s, err := Parse("live.yaml", []byte(`apiVersion: rocebed/v1
name: live
dilation: 1024
topology: {dumbbell: {left: 1, right: 1}, rate: 10Gbps}
`))
	if err != nil {
		t.Fatal(err)
	}
	fab, choice, err := Up(t.Context(), s, UpOptions{Backend: Soft, Testbed: fmt.Sprintf("live%d", os.Getpid())})
	if err != nil {
		t.Fatal(err)
	}
	l := NewLiveFaults(s, choice, fab, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := fab.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestFaultsOnALivingFabricMayBeAskedForFromAnywhereAtAnyTime(t *testing.T) {
	l := liveOnSoft(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var askers sync.WaitGroup
	for i := range 4 {
		askers.Go(func() {
			name := fmt.Sprintf("f%d", i)
			for range 10 {
				states, err := l.Add(ctx, "test", []byte("{name: "+name+", kind: loss, at: [leaf1-leaf2], probability: 1%, schedule: {every: 400us, for: 200us}}"))
				if err != nil || len(states) != 1 || !states[0].Verified {
					t.Errorf("added %+v, %v", states, err)
				}
				if all, err := l.List(ctx); err != nil || len(all) == 0 {
					t.Errorf("listed %+v, %v", all, err)
				}
				states, err = l.Heal(ctx, name)
				if err != nil || len(states) != 1 || states[0].State != fabric.FaultHealed {
					t.Errorf("healed %+v, %v", states, err)
				}
			}
		})
	}
	askers.Wait()
	if states, err := l.Add(ctx, "test", []byte("- {kind: down, at: [leaf1-leaf2], schedule: {for: 50us}}\n- {kind: delay, delay: 5us, at: [leaf1], schedule: {when: 'metric if_tx_packets >= 0'}}\n")); err != nil || len(states) != 2 {
		t.Errorf("added %+v, %v", states, err)
	}
	if err := l.await(ctx, func() bool { return l.run.all[len(l.run.all)-1].result.Verified }); err != nil {
		t.Errorf("the metric was not read: %v", err)
	}
	if err := l.Close(ctx); err != nil {
		t.Error(err)
	}
	if _, err := l.Add(ctx, "test", []byte("{kind: down, at: [leaf1]}")); err == nil {
		t.Error("a fault was added to what is closed")
	}
	if _, err := l.Heal(ctx); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("healing what is closed: %v", err)
	}
}
