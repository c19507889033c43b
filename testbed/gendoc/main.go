// Gendoc writes the tables of docs/faults.md from the definitions of faults: go generate ./faults.
package main

import (
	"fmt"
	"os"

	"github.com/rocebed/rocebed/faults"
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
	text, err := faults.Splice(string(page))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(text), 0o644)
}
