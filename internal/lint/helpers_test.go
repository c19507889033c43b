package main

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

func parse(t *testing.T, name, src string) *File {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return &File{Path: name, Src: []byte(src), Fset: fset, AST: f}
}

// expand turns the documentation's groups into rooms.
func expand(name string) []string {
	switch name {
	case "silicon":
		return silicon
	case "plain":
		return plain
	case "below":
		return below
	}
	return []string{name}
}

func unique(s []string) string {
	s = slices.Clone(s)
	slices.Sort(s)
	return strings.Join(slices.Compact(s), " ")
}
