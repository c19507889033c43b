// Command lint checks the project's own rules, which no general linter knows: which room may
// import which, one way into a namespace, no wall clock, global randomness or map order where
// a run must be reproducible, no sleeps in tests, no shell strings, no network host names,
// files of a readable size.
//
//	go run ./internal/lint [DIR]
//
// It reads every Go file of the tree whatever its build tags, prints each finding as
// file:line:column, and exits 1 when there is an error (warnings alone pass). A rule is one
// file; its tables say what is allowed and why. It imports no other room.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	findings, err := Check(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(2)
	}
	errs := 0
	for _, f := range findings {
		fmt.Println(f)
		if !f.Warning {
			errs++
		}
	}
	if errs > 0 {
		fmt.Printf("lint: %d broken rules\n", errs)
		os.Exit(1)
	}
}

// fileRules look at one Go file at a time.
var fileRules = []func(*File) []Finding{
	checkFormat, checkSize, checkImports, checkSystemImports, checkNamespaces,
	checkClock, checkRandom, checkSleep, checkShell,
}

// Check runs every rule on the tree at root.
func Check(root string) ([]Finding, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	tree, err := load(root)
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, f := range tree.Go {
		for _, rule := range fileRules {
			out = append(out, rule(f)...)
		}
	}
	out = append(out, checkComments(tree)...)
	out = append(out, checkTestMains(tree)...)
	out = append(out, checkHosts(tree)...)
	order, err := checkMapOrder(tree)
	if err != nil {
		return nil, err
	}
	return sorted(append(out, order...)), nil
}
