package testbed

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestABinaryThatCannotBuildTheBackendBootsNoGuestToFindOut(t *testing.T) {
	before := builders[Kernel]
	defer func() { builders[Kernel] = before }()
	missing := errors.New("no libibverbs")
	built := missing
	Register(&Builder{Backend: Kernel, Built: func() error { return built }, Capable: func(context.Context) error { return errors.New("an old kernel") }})
	for _, guest := range []bool{false, true} {
		built = missing
		if c, err := Choose(context.Background(), &Scenario{Backend: Auto}, "", guest); !errors.Is(err, ErrIncapable) || !errors.Is(err, missing) {
			t.Errorf("guest %v: chose %+v, %v", guest, c, err)
		}
		built = nil
		if c, err := Choose(context.Background(), &Scenario{Backend: Auto}, "", guest); err != nil || !c.Guest || guest == strings.Contains(c.Why, "old kernel") {
			t.Errorf("guest %v: chose %+v, %v", guest, c, err)
		}
	}
}
