//go:build linux

package linux

import (
	"slices"
	"testing"
)

func TestAProgramsEnvironmentHasEachNameOnceAndTheLastCounts(t *testing.T) {
	got := environment([]string{"A=1", "LD_PRELOAD=/mine.so", "B=2", "A=3", "LD_PRELOAD=/theirs.so", "C="})
	want := []string{"A=3", "LD_PRELOAD=/theirs.so:/mine.so", "B=2", "C="}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
