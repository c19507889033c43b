package strict

import "slices"

// Nearest is the candidate that word was probably meant to be, or "". Near means at most a
// third of its letters wrong, missing, added or swapped with their neighbour (optimal string
// alignment distance); of equally near candidates the first.
func Nearest(word string, candidates []string) string {
	best, least := "", max(1, (len([]rune(word))+1)/3)+1
	for _, c := range candidates {
		if d := distance([]rune(word), []rune(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// DidYouMean is ` (did you mean "x"?)` for the nearest candidate; where none is near it
// lists a few candidates, and it is empty when there are none.
func DidYouMean(word string, candidates []string) string {
	if near := Nearest(word, candidates); near != "" {
		return " (did you mean \"" + near + "\"?)"
	}
	if len(candidates) == 0 {
		return ""
	}
	sorted := slices.Sorted(slices.Values(candidates))
	const show = 12
	list := ""
	for i, c := range sorted {
		if i == show {
			list += ", …"
			break
		}
		if i > 0 {
			list += ", "
		}
		list += c
	}
	return " (there is: " + list + ")"
}

// distance is the optimal string alignment distance. Words longer than 64 letters are far
// from everything: nobody misspells those, and a hostile file could make them costly.
func distance(a, b []rune) int {
	if len(a) > 64 || len(b) > 64 {
		return 1 << 20
	}
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
