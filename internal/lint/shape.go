package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
)

// A file is one idea: so long is worth a look, so long is refused.
const longLines, tooManyLines = 400, 500

func checkSize(f *File) []Finding {
	n := bytes.Count(f.Src, []byte("\n"))
	if n <= longLines {
		return nil
	}
	return []Finding{{Path: f.Path, Line: n, Col: 1, Rule: "size", Warning: n <= tooManyLines,
		Say: fmt.Sprintf("%d lines; a file is one idea, mostly under %d: divide it", n, longLines)}}
}

func checkFormat(f *File) []Finding {
	want, err := format.Source(f.Src)
	if err != nil || bytes.Equal(want, f.Src) {
		return nil
	}
	line := 1
	for i := range min(len(want), len(f.Src)) {
		if want[i] != f.Src[i] {
			break
		}
		if want[i] == '\n' {
			line++
		}
	}
	return []Finding{{Path: f.Path, Line: line, Col: 1, Rule: "format", Say: "not formatted: run gofmt -w on it"}}
}

// checkComments wants a package comment in every package.
func checkComments(t *Tree) []Finding {
	documented := map[string]bool{}
	first := map[string]*File{}
	for _, f := range t.Go {
		if f.IsTest() {
			continue
		}
		if f.AST.Doc != nil {
			documented[f.Dir()] = true
		}
		if first[f.Dir()] == nil {
			first[f.Dir()] = f
		}
	}
	var out []Finding
	for dir, f := range first {
		if !documented[dir] {
			out = append(out, f.at(f.AST.Package, "comment", "package %s has no package comment: say what it is for and what it must never do", f.AST.Name.Name))
		}
	}
	return out
}

// checkTestMains wants every package with tests to have a test main that fails on leaks.
func checkTestMains(t *Tree) []Finding {
	guarded := map[string]bool{}
	first := map[string]*File{}
	for _, f := range t.Go {
		if !f.IsTest() {
			continue
		}
		if first[f.Dir()] == nil {
			first[f.Dir()] = f
		}
		f.uses(func(_ *ast.SelectorExpr, pkg, name string) {
			if pkg == module+"/internal/testleak" && (name == "Main" || name == "Run") {
				guarded[f.Dir()] = true
			}
		})
		if f.In("internal/testleak") {
			guarded[f.Dir()] = true
		}
	}
	var out []Finding
	for dir, f := range first {
		if !guarded[dir] {
			out = append(out, f.at(f.AST.Package, "testmain", "%s's tests may leak: give them func TestMain(m *testing.M) { testleak.Main(m) }", dir))
		}
	}
	return out
}
