//go:build linux

package soft

import (
	"testing"

	"github.com/rocebed/rocebed/internal/testleak"
)

func TestMain(m *testing.M) {
	ProcessIfAsked()
	testleak.Main(m)
}
