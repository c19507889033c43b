package engine

import (
	"testing"

	"github.com/rocebed/rocebed/internal/testneed"
)

func TestAKernelThatIsSaidToHaveTheEngineHasIt(t *testing.T) {
	testneed.Root(t)
	said := Supported()
	e, err := Open(Config{Testbed: "supported", Ports: 1, Nodes: 1, Slots: 1})
	if err == nil {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	if (said == nil) != (err == nil) {
		t.Errorf("said: %v; when tried: %v", said, err)
	}
	t.Logf("said: %v; when tried: %v", said, err)
}
