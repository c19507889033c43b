package main

import (
	"go/ast"
	"strings"
)

// reproducible rooms give the same result for the same seed, on any machine.
var reproducible = []string{"datapath", "faults", "workloads"}

// wallClock are the files of reproducible rooms that read the machine's clock, and why.
var wallClock = map[string]string{
	"datapath/loop/real.go":   "the real clock behind loop.Loop is this file",
	"datapath/loop/source.go": "and this one, for loops that wait in a source",
}

// clockFuncs read or wait on the machine's clock.
var clockFuncs = map[string]bool{"Now": true, "Since": true, "Until": true, "After": true, "AfterFunc": true,
	"Tick": true, "NewTimer": true, "NewTicker": true, "Sleep": true}

func checkClock(f *File) []Finding {
	if !f.In(reproducible...) || f.IsTest() || wallClock[f.Path] != "" {
		return nil
	}
	var out []Finding
	f.uses(func(sel *ast.SelectorExpr, pkg, name string) {
		if pkg == "time" && clockFuncs[name] {
			out = append(out, f.at(sel.Pos(), "clock", "time.%s reads the machine's clock: use the loop's Now and timers", name))
		}
	})
	return out
}

// randomTypes are what math/rand exports besides its global generator.
var randomTypes = map[string]bool{"Rand": true, "Source": true, "PCG": true, "ChaCha8": true, "Zipf": true}

func checkRandom(f *File) []Finding {
	if !f.In(reproducible...) {
		return nil
	}
	var out []Finding
	f.uses(func(sel *ast.SelectorExpr, pkg, name string) {
		switch {
		case pkg == "crypto/rand":
			out = append(out, f.at(sel.Pos(), "random", "crypto/rand.%s can't be seeded: use a generator seeded by (seed, node, purpose)", name))
		case pkg == "math/rand" || pkg == "math/rand/v2":
			if !randomTypes[name] && !strings.HasPrefix(name, "New") {
				out = append(out, f.at(sel.Pos(), "random", "rand.%s uses the global generator: use one seeded by (seed, node, purpose)", name))
			}
		}
	})
	return out
}

func checkSleep(f *File) []Finding {
	if !f.IsTest() {
		return nil
	}
	var out []Finding
	f.uses(func(sel *ast.SelectorExpr, pkg, name string) {
		if pkg == "time" && name == "Sleep" {
			out = append(out, f.at(sel.Pos(), "sleep", "no sleeps in tests: wait for a condition with a deadline and say what was last seen"))
		}
	})
	return out
}
