package compare

import (
	"fmt"
	"strings"
)

// Block puts content where a page says that it is generated: between the lines "<!-- NAME: … -->" and "<!-- end NAME -->".
func Block(page, name, content string) (string, error) {
	begin, end := "<!-- "+name+": ", "<!-- end "+name+" -->"
	at := strings.Index(page, begin)
	if at < 0 {
		return "", fmt.Errorf("the page has no line %q", begin+"… -->")
	}
	line := strings.IndexByte(page[at:], '\n')
	stop := strings.Index(page, end)
	if line < 0 || stop < at+line {
		return "", fmt.Errorf("the page has no line %q after %q", end, begin+"… -->")
	}
	return page[:at+line+1] + "\n" + strings.TrimSpace(content) + "\n\n" + page[stop:], nil
}

// Inside is what stands there.
func Inside(page, name string) string {
	_, after, _ := strings.Cut(page, "<!-- "+name+": ")
	_, after, _ = strings.Cut(after, "-->\n")
	inside, _, _ := strings.Cut(after, "<!-- end "+name+" -->")
	return strings.TrimSpace(inside)
}
