package faults

import (
	"errors"
	"strings"
	"testing"
)

func TestAMatrixSaysWhatABackendCanAndWhyNot(t *testing.T) {
	var m Matrix
	m.Ask("some", func(yaml string) error {
		s := decode(t, yaml)
		switch {
		case s.Kind == Loss && s.GE != nil:
			return errors.New("no bursts")
		case s.Kind != Loss && s.Kind != Delay:
			return errors.New(`it has no fault of kind "` + string(s.Kind) + `"`)
		}
		return nil
	})
	m.Ask("none", func(string) error { return errors.New("not today") })
	for _, c := range []struct {
		backend string
		kind    Kind
		want    Support
	}{{"some", Loss, Partly}, {"some", Delay, Yes}, {"some", Reboot, No}, {"none", Loss, No}} {
		if a, ok := m.Of(c.backend, c.kind); !ok || a.Support != c.want || (a.Support == Yes) != (len(a.Why) == 0) {
			t.Errorf("%s of %s: %+v, want %v", c.kind, c.backend, a, c.want)
		}
	}
	text := m.Markdown()
	for _, want := range []string{"| kind | some | none |", "| `loss` | partly (", "| `delay` | yes |", ") no bursts", ") it has no fault of this kind  \n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table has no %q:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "it has no fault of this kind"); n != 1 {
		t.Errorf("the reason is there %d times", n)
	}
}
