package expect

import (
	"reflect"
	"slices"
	"strings"
)

// Nearest is the candidate that a misspelt word probably meant, or empty when none is close.
func Nearest(word string, candidates []string) string {
	best, bestAt := "", len(word)/2+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < bestAt {
			best, bestAt = c, d
		}
	}
	return best
}

// distance is the number of edits between two words (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diag
			if a[i-1] != b[j-1] {
				cost++
			}
			diag = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

func contains(all []string, s string) bool { return slices.Contains(all, s) }

// fieldNames are all fields that expressions can select.
func fieldNames() []string {
	var names []string
	for _, t := range []reflect.Type{reflect.TypeFor[Workload](), reflect.TypeFor[Latency](), reflect.TypeFor[Flow](), reflect.TypeFor[Fault]()} {
		for i := range t.NumField() {
			names = append(names, t.Field(i).Tag.Get("cel"))
		}
	}
	return names
}
