//go:build !(ibv && linux && cgo)

package ibv

import (
	"errors"
	"strings"
	"testing"
)

func TestOpenWithoutLibibverbsSaysHowToGetIt(t *testing.T) {
	_, err := Open(nil, "rxe0", Options{})
	if !errors.Is(err, ErrNotBuilt) {
		t.Fatal(err)
	}
	for _, word := range []string{"rxe0", "libibverbs-dev", "-tags ibv"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}
