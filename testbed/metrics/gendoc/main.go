// Gendoc writes docs/metrics.md from the metric registry: go generate ./testbed/metrics.
package main

import (
	"fmt"
	"os"

	"github.com/rocebed/rocebed/testbed/metrics"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gendoc FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(metrics.Standard.Markdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "gendoc:", err)
		os.Exit(1)
	}
}
