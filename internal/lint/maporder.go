package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

// orderMark, with a reason behind it on the loop's line or the line above, lets a loop range
// over a map: //lint:maporder the sum does not depend on the order
const orderMark = "//lint:maporder "

// checkMapOrder refuses ranging over a map in the reproducible rooms, unless the loop only
// collects the keys or values for sorting, or says why order can't matter. It needs types,
// so it loads those rooms as the go command does; files for other platforms are not seen.
func checkMapOrder(t *Tree) ([]Finding, error) {
	var patterns []string
	for _, d := range reproducible {
		for _, f := range t.Go {
			if f.In(d) {
				patterns = append(patterns, "./"+d+"/...")
				break
			}
		}
	}
	if len(patterns) == 0 {
		return nil, nil
	}
	pkgs, err := packages.Load(&packages.Config{
		Dir: t.Root,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes |
			packages.NeedTypesInfo | packages.NeedImports,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, p := range pkgs {
		for _, e := range p.Errors {
			return nil, fmt.Errorf("load %s: %s", p.PkgPath, e)
		}
		for _, file := range p.Syntax {
			out = append(out, mapRanges(t.Root, p, file)...)
		}
	}
	return out, nil
}

func mapRanges(root string, p *packages.Package, file *ast.File) []Finding {
	marked := map[int]bool{}
	for _, g := range file.Comments {
		for _, c := range g.List {
			if reason, ok := strings.CutPrefix(c.Text, orderMark); ok && strings.TrimSpace(reason) != "" {
				line := p.Fset.Position(c.Pos()).Line
				marked[line], marked[line+1] = true, true
			}
		}
	}
	var out []Finding
	say := func(pos token.Pos, what string) {
		at := p.Fset.Position(pos)
		rel, err := filepath.Rel(root, at.Filename)
		if err != nil || strings.HasPrefix(rel, "..") || marked[at.Line] {
			return // cgo's generated files lie elsewhere
		}
		out = append(out, Finding{Path: filepath.ToSlash(rel), Line: at.Line, Col: at.Column, Rule: "maporder",
			Say: what + " has no order: collect the keys and sort them, or say why order can't matter with " + orderMark + "REASON"})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			if isMap(p.TypesInfo, n.X) && !collects(n) {
				say(n.Pos(), "ranging over a map")
			}
			if call, ok := n.X.(*ast.CallExpr); ok && mapIterator(p.TypesInfo, call) && !collects(n) {
				say(n.Pos(), "ranging over maps.Keys, Values or All")
			}
		case *ast.CallExpr:
			if fn, ok := n.Fun.(*ast.SelectorExpr); ok && fn.Sel.Name == "Collect" && len(n.Args) == 1 {
				if arg, ok := n.Args[0].(*ast.CallExpr); ok && mapIterator(p.TypesInfo, arg) {
					say(n.Pos(), "slices.Collect of a map (slices.Sorted sorts)")
				}
			}
		}
		return true
	})
	return out
}

func isMap(info *types.Info, e ast.Expr) bool {
	t := info.TypeOf(e)
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// mapIterator says whether the call is maps.Keys, maps.Values or maps.All.
func mapIterator(info *types.Info, call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	obj := info.Uses[sel.Sel]
	return obj != nil && obj.Pkg() != nil && obj.Pkg().Path() == "maps" &&
		(obj.Name() == "Keys" || obj.Name() == "Values" || obj.Name() == "All")
}

// collects says whether the loop does nothing but gather: one append, or entries of another
// map, or deletions. What is gathered is sorted later, or has no order itself.
func collects(r *ast.RangeStmt) bool {
	for _, s := range r.Body.List {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if len(s.Lhs) != 1 || len(s.Rhs) != 1 {
				return false
			}
			if _, ok := s.Lhs[0].(*ast.IndexExpr); ok && keyedBy(s.Lhs[0].(*ast.IndexExpr), r) {
				continue
			}
			call, ok := s.Rhs[0].(*ast.CallExpr)
			if !ok || !named(call.Fun, "append") {
				return false
			}
		case *ast.ExprStmt:
			call, ok := s.X.(*ast.CallExpr)
			if !ok || !named(call.Fun, "delete") {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func named(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// keyedBy says whether the assignment's place is chosen by the loop's key alone.
func keyedBy(x *ast.IndexExpr, r *ast.RangeStmt) bool {
	key, ok := r.Key.(*ast.Ident)
	return ok && named(x.Index, key.Name)
}
