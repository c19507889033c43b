package agreement

import "strings"

// MergeFigures puts the rows of a table of figures in the place of a page's for the same scene, mode and backend.
func MergeFigures(page, rows string) string {
	return merge(page, rows, func(cells []string) string {
		backend, _, _ := strings.Cut(cells[2], ", ") // without how it ran
		return cells[0] + "|" + cells[1] + "|" + backend
	})
}

// MergeClaims puts the rows of a table of claims in the place of a page's for the same scene and claim. Both are of the same backends.
func MergeClaims(page, rows string) string {
	return merge(page, rows, func(cells []string) string { return cells[0] + "|" + cells[1] })
}

// merge replaces rows of a page's table by those with the same key. Rows that the page lacks go to its end.
func merge(page, rows string, key func(cells []string) string) string {
	of := func(row string) string { return key(strings.Split(strings.TrimPrefix(row, "| "), " | ")) }
	out := strings.Split(strings.TrimSpace(page), "\n")
	at := map[string]int{}
	for i := 2; i < len(out); i++ { // behind the head
		at[of(out[i])] = i
	}
	for _, row := range strings.Split(strings.TrimSpace(rows), "\n")[2:] {
		if i, ok := at[of(row)]; ok {
			out[i] = row
		} else {
			out = append(out, row)
		}
	}
	return strings.Join(out, "\n") + "\n"
}
