package guest

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// consoleKeeps is how much of the console is remembered, in bytes: a panic with its
// call trace takes about 4 KiB.
const consoleKeeps = 64 << 10

// console remembers the end of what the guest's kernel printed and passes all of it on.
type console struct {
	mu   sync.Mutex
	tail []byte
	next io.Writer
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tail = append(c.tail, p...)
	if over := len(c.tail) - consoleKeeps; over > 0 {
		c.tail = append(c.tail[:0], c.tail[over:]...)
	}
	if c.next != nil {
		// A log that can't be written must not end the guest.
		if _, err := c.next.Write(p); err != nil {
			c.next = nil
		}
	}
	return len(p), nil
}

// lines returns up to n of the last lines, without control characters.
func (c *console) lines(n int) []string {
	c.mu.Lock()
	text := strings.ToValidUTF8(string(c.tail), "?")
	c.mu.Unlock()
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(strings.Map(func(r rune) rune {
			if r < ' ' && r != '\t' {
				return -1
			}
			return r
		}, line), " ")
		if line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return lines
}

// panicLine returns the line with which the kernel announced a panic, or "".
func (c *console) panicLine() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for line := range bytes.Lines(c.tail) {
		if i := bytes.Index(line, []byte("Kernel panic - not syncing")); i >= 0 {
			return strings.TrimSpace(string(line[i:]))
		}
	}
	return ""
}
