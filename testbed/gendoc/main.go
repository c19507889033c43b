// Gendoc writes the tables of docs/faults.md from the definitions of faults and from what the backends say of them: go
// generate ./faults.
package main

import (
	"fmt"
	"os"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/compare"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gendoc FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "gendoc:", err)
		os.Exit(1)
	}
}

func write(file string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text := string(page)
	for _, b := range []struct{ name, content string }{{"kinds", faults.Markdown()}, {"abilities", testbed.FaultMatrix().Markdown()}} {
		if text, err = compare.Block(text, b.name, b.content); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return os.WriteFile(file, []byte(text), 0o644)
}
