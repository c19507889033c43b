package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// module is the import path that our rooms begin with.
const module = "github.com/rocebed/rocebed"

// Tree is everything that is checked.
type Tree struct {
	Root string
	Go   []*File
	// Text is every text file, Go or not, by its path from the root.
	Text map[string][]byte
}

// File is one Go file, parsed alone: rules on it need no build and see every platform's files.
type File struct {
	Path string // from the root, with slashes
	Src  []byte
	Fset *token.FileSet
	AST  *ast.File
}

// Dir is the folder of the file from the root: its room or a part of it.
func (f *File) Dir() string { return path.Dir(f.Path) }

// IsTest says whether the file is a test's.
func (f *File) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// In says whether the file lies in one of the folders, at any depth.
func (f *File) In(dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return within(f.Dir(), d) })
}

func within(dir, of string) bool { return dir == of || strings.HasPrefix(dir, of+"/") }

// Finding is a broken rule at a place.
type Finding struct {
	Path      string
	Line, Col int
	Rule, Say string
	Warning   bool
}

func (f Finding) String() string {
	kind := ""
	if f.Warning {
		kind = "warning: "
	}
	return fmt.Sprintf("%s:%d:%d: %s%s (%s)", f.Path, f.Line, f.Col, kind, f.Say, f.Rule)
}

func (f *File) at(p token.Pos, rule, format string, args ...any) Finding {
	pos := f.Fset.Position(p)
	return Finding{Path: f.Path, Line: pos.Line, Col: pos.Column, Rule: rule, Say: fmt.Sprintf(format, args...)}
}

func sorted(f []Finding) []Finding {
	slices.SortFunc(f, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), a.Line-b.Line, a.Col-b.Col, cmp.Compare(a.Rule, b.Rule))
	})
	return f
}

// skipped folders hold nothing that we wrote.
var skipped = []string{".git", "bin", "out", "testdata", "node_modules"}

func load(root string) (*Tree, error) {
	t := &Tree{Root: root, Text: map[string][]byte{}}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != root && slices.Contains(skipped, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		src, err := os.ReadFile(p)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // somebody's temporary file
		}
		if err != nil {
			return err
		}
		if len(src) > 4<<20 || bytes.IndexByte(src, 0) >= 0 {
			return nil // not text
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		t.Text[rel] = src
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, rel, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		t.Go = append(t.Go, &File{Path: rel, Src: src, Fset: fset, AST: f})
		return nil
	})
	return t, err
}

// imports maps the name by which the file knows a package to its import path. The name of a
// package imported plainly is taken to be the last element of its path, versions aside.
func (f *File) imports() map[string]string {
	out := map[string]string{}
	for _, i := range f.AST.Imports {
		p := importPath(i)
		name := path.Base(p)
		if len(name) > 1 && name[0] == 'v' && name[1] >= '0' && name[1] <= '9' {
			name = path.Base(path.Dir(p))
		}
		if i.Name != nil {
			name = i.Name.Name
		}
		out[name] = p
	}
	return out
}

func importPath(i *ast.ImportSpec) string {
	p, err := strconv.Unquote(i.Path.Value)
	if err != nil {
		return i.Path.Value // the parser takes nothing that does not unquote
	}
	return p
}

// uses calls visit for each use of a name that an imported package exports.
func (f *File) uses(visit func(sel *ast.SelectorExpr, pkg, name string)) {
	imports := f.imports()
	ast.Inspect(f.AST, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok {
			if pkg, ok := imports[id.Name]; ok {
				visit(sel, pkg, sel.Sel.Name)
			}
		}
		return true
	})
}
