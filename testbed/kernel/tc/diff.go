//go:build linux

package tc

import (
	"fmt"
	"slices"
)

// Diff is what turns the tree have, as the kernel reported it, into want. Parameters are
// changed in place, and what waits in the queues stays there. Where the shape differs (a marker
// comes or goes), the tree is built anew and what waited is lost.
func Diff(have []Report, want []Object) []Op {
	if len(want) == 0 {
		return removal(have)
	}
	var changes []Op
	known := 0
	for _, w := range want {
		h, ok := find(have, w)
		if !ok {
			return append(removal(have), additions(want)...)
		}
		known++
		if w.Spec.sameAs(h.Spec) != nil {
			changes = append(changes, Op{Change, w})
		}
	}
	if known != len(have) {
		return append(removal(have), additions(want)...)
	}
	return changes
}

// Verify says how the kernel's tree differs from want; nil: not at all.
func Verify(have []Report, want []Object) error {
	for _, w := range want {
		h, ok := find(have, w)
		if !ok {
			return fmt.Errorf("%v is missing", w)
		}
		if err := w.Spec.sameAs(h.Spec); err != nil {
			return fmt.Errorf("%v: %w", w, err)
		}
	}
	for _, h := range have {
		if !slices.ContainsFunc(want, func(w Object) bool { return matches(h, w) }) {
			return fmt.Errorf("%v is there though nothing asks for it", h.Object)
		}
	}
	return nil
}

func additions(want []Object) []Op {
	ops := make([]Op, len(want))
	for i, w := range want {
		ops[i] = Op{Add, w}
	}
	return ops
}

// removal takes the root away, and everything goes with it.
func removal(have []Report) []Op {
	for _, h := range have {
		if !h.Class && h.Parent == Root {
			return []Op{{Delete, h.Object}}
		}
	}
	return nil
}

func find(have []Report, w Object) (Report, bool) {
	i := slices.IndexFunc(have, func(h Report) bool { return matches(h, w) })
	if i < 0 {
		return Report{}, false
	}
	return have[i], true
}

func matches(h Report, w Object) bool {
	return h.ID == w.ID && h.Class == w.Class && h.Parent == w.Parent && h.Spec.Kind() == w.Spec.Kind()
}
