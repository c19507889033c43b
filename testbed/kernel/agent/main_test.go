//go:build linux

package agent

import (
	"testing"

	"github.com/rocebed/rocebed/internal/testleak"
)

func TestMain(m *testing.M) {
	ProcessIfAsked()
	testleak.Main(m)
}
