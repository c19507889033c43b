//go:build linux

package engine

import (
	"testing"

	"github.com/rocebed/rocebed/internal/testleak"
)

func TestMain(m *testing.M) { testleak.Main(m) }
