package testbed

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/testbed/record"
)

// What tests of runs have in common, whatever the backend.

// runOn runs a scenario on a backend and opens its record.
func runOn(t *testing.T, ctx context.Context, on Backend, source string, opt RunOptions) (*Outcome, *record.Reader) {
	t.Helper()
	s, err := Parse("test.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	opt.Backend, opt.Out = on, filepath.Join(t.TempDir(), "r")
	out, err := Run(ctx, s, opt)
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(opt.Out)
	if err != nil {
		t.Fatal(err)
	}
	return out, r
}

// oneLife holds the only fault of a run to what becomes of any.
func oneLife(t *testing.T, events []record.Event) {
	t.Helper()
	var life []string
	for _, e := range events {
		if e.Source == "fault" {
			life = append(life, e.What)
		}
	}
	if want := []string{"planned", "applied", "verified", "healed", "verified clean"}; !slices.Equal(life, want) {
		t.Errorf("the fault was %q, want %q", life, want)
	}
}

// stopWhen ends the run when a note contains a text.
type stopWhen struct {
	Silent
	text string
	stop func()
}

func (s stopWhen) Note(text string) {
	if strings.Contains(text, s.text) {
		s.stop()
	}
}
