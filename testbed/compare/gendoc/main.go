// Gendoc writes what is generated into a page: the table of what differs between backends (go generate ./testbed/compare), or, into
// a block that is named, what it is given on standard input.
//
//	gendoc FILE
//	gendoc FILE BLOCK <CONTENT
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/rocebed/rocebed/testbed/compare"
)

func main() {
	var err error
	switch len(os.Args) {
	case 2:
		err = write(os.Args[1], "differences", compare.DifferencesTable())
	case 3:
		var content []byte
		if content, err = io.ReadAll(os.Stdin); err == nil {
			err = write(os.Args[1], os.Args[2], string(content))
		}
	default:
		fmt.Fprintln(os.Stderr, "usage: gendoc FILE [BLOCK]")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gendoc:", err)
		os.Exit(1)
	}
}

func write(file, block, content string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := compare.Block(string(page), block, content)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(text), 0o644)
}
