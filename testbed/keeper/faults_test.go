//go:build linux

package keeper

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/testbed/fabric"
)

// stuckFaults are faults that won't heal.
type stuckFaults struct{}

var errStuck = errors.New("fault cut: IT COULD NOT BE HEALED: leaf1:eth2: no such device")

func (stuckFaults) Add(_ context.Context, file string, source []byte) ([]fabric.FaultState, error) {
	return []fabric.FaultState{{Name: string(source), Kind: file}}, nil
}
func (stuckFaults) List(context.Context) ([]fabric.FaultState, error) { return nil, nil }
func (stuckFaults) Heal(context.Context, ...string) ([]fabric.FaultState, error) {
	return nil, errStuck
}
func (stuckFaults) Close(context.Context) error { return errStuck }

func TestATestbedWithAFaultThatWontHealIsTakenDownAndTheCommandFails(t *testing.T) {
	c := upAs(t, testName("stuck"), "stuck")
	if got, err := c.AddFaults(t.Context(), "file", []byte("what was sent")); err != nil || len(got.Faults) != 1 || got.Faults[0].Name != "what was sent" || got.Faults[0].Kind != "file" {
		t.Errorf("added %+v, %v", got, err)
	}
	_, err := c.HealFaults(t.Context(), "cut")
	answer, ok := errors.AsType[*AnswerError](err)
	if !ok || answer.Why != errStuck.Error() || answer.Code != 1 {
		t.Errorf("healing said %v", err)
	}
	if err := c.Down(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "healing its faults: "+errStuck.Error()) {
		t.Errorf("down said %v", err)
	}
	expectGone(t, c.Testbed())
}
