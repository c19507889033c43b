package main

import (
	"time"

	"github.com/rocebed/rocebed/internal/testleak"
)

// patience is how long the kernel may need to take back what was given up.
const patience = 10 * time.Second

// watch looks at the machine now; the function it returns says what was added since by the
// processes with the environment variable, and waits for what goes by itself.
func watch(value string) func() []string {
	before := testleak.LookAtMachine()
	return func() []string {
		deadline := time.Now().Add(patience)
		for {
			leaks := before.Left(testleak.LookAtMachine(), value)
			if len(leaks) == 0 || time.Now().After(deadline) {
				return leaks
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}
