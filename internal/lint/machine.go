package main

import (
	"go/ast"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// namespaceRoom is the only room that enters a network namespace, and namespaceFiles are the
// files of it that do, and why. All but the bare loop and the
// process that never comes back run on the threads of thread.go.
const namespaceRoom = "testbed/linux"

var namespaceFiles = map[string]string{
	"testbed/linux/thread.go":       "the threads that may leave their namespace, and how they come back",
	"testbed/linux/namespace.go":    "Namespace.Do and the making of a namespace",
	"testbed/linux/enter.go":        "a process that becomes a program in a namespace, for good",
	"testbed/linux/scratch.go":      "a namespace for trying things, on a thread of thread.go",
	"testbed/linux/remove.go":       "looks into a namespace that a dead process left before it removes it",
	"testbed/linux/world.go":        "a process that is born in a namespace, and keeps it for a user's testbeds",
	"internal/bareloop/bareloop.go": "the bare loop that bring-up is measured against",
}

// checkNamespaces refuses every way into a network namespace but the one helper: a failed
// assertion inside a raw ns.Do kills the test binary and skips every cleanup, and a thread
// that could not be switched back poisons whatever runs on it next.
func checkNamespaces(f *File) []Finding {
	if namespaceFiles[f.Path] != "" || f.In("internal/lint", "internal/testleak") {
		return nil
	}
	var out []Finding
	raw := func(n ast.Node, what string) {
		out = append(out, f.at(n.Pos(), "namespace", "%s enters a namespace by itself: use %s's Namespace.Do", what, namespaceRoom))
	}
	for _, i := range f.AST.Imports {
		switch p := importPath(i); p {
		case "github.com/containernetworking/plugins/pkg/ns", "github.com/vishvananda/netns":
			if !f.In(namespaceRoom) {
				raw(i, p)
			}
		}
	}
	f.uses(func(sel *ast.SelectorExpr, pkg, name string) {
		switch {
		case strings.HasSuffix(pkg, "/pkg/ns") && name == "WithNetNSPath",
			strings.HasSuffix(pkg, "/netns") && strings.HasPrefix(name, "Set"),
			name == "Setns" && (pkg == "syscall" || pkg == "golang.org/x/sys/unix"),
			name == "CLONE_NEWNET":
			raw(sel, sel.X.(*ast.Ident).Name+"."+name)
		}
	})
	ast.Inspect(f.AST, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "Do" {
			return true
		}
		if lit, ok := call.Args[0].(*ast.FuncLit); ok && takesNetNS(lit) {
			raw(call, "ns.Do")
		}
		return true
	})
	return out
}

// takesNetNS says whether the function takes one ns.NetNS, as the argument of ns.Do does.
func takesNetNS(lit *ast.FuncLit) bool {
	p := lit.Type.Params.List
	if len(p) != 1 {
		return false
	}
	sel, ok := p[0].Type.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "NetNS"
}

// shellStrings are the files that may hand a shell a command string, and why.
var shellStrings = map[string]string{
	"testbed/record/record_linux_test.go": "the documented pipeline of coreutils must give the record's hash",
}

// checkShell refuses a command handed to a shell as a string: quoting breaks on the first
// odd name. An interactive shell, or a script file, is fine.
func checkShell(f *File) []Finding {
	if shellStrings[f.Path] != "" {
		return nil
	}
	var out []Finding
	imports := f.imports()
	ast.Inspect(f.AST, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || (sel.Sel.Name != "Command" && sel.Sel.Name != "CommandContext") {
			return true
		}
		id, ok := sel.X.(*ast.Ident)
		if !ok || imports[id.Name] != "os/exec" {
			return true
		}
		args := call.Args
		if sel.Sel.Name == "CommandContext" && len(args) > 0 {
			args = args[1:]
		}
		if len(args) > 1 && isShell(text(args[0])) && strings.HasPrefix(text(args[1]), "-") && strings.HasSuffix(text(args[1]), "c") {
			out = append(out, f.at(call.Pos(), "shell", "a command string for %s: start the program itself with its arguments", text(args[0])))
		}
		return true
	})
	return out
}

func isShell(s string) bool {
	base := s[strings.LastIndexByte(s, '/')+1:]
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "zsh"}, base)
}

// text is a string literal's value, or "".
func text(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return s
}

// serviceHost is a name that looks like a package registry's or a mirror's. They change and
// differ by site, so the machine's own configuration is asked instead.
var serviceHost = regexp.MustCompile(`(?i)\b(?:deb|ftp\d*|mirrors?|archive|security|proxy|goproxy|registry|sum|packages|pkgs|snapshot|repo|index|downloads?|dl|dl-cdn|cdn)` +
	`\.[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:org|com|net|io|dev|cn|de|edu)\b`)

func checkHosts(t *Tree) []Finding {
	var out []Finding
	for name, src := range t.Text {
		if strings.HasPrefix(name, "internal/lint/") {
			continue // the planted faults
		}
		for n, line := range strings.Split(string(src), "\n") {
			for _, m := range serviceHost.FindAllStringIndex(line, -1) {
				out = append(out, Finding{Path: name, Line: n + 1, Col: m[0] + 1, Rule: "hosts",
					Say: line[m[0]:m[1]] + " looks like a registry or a mirror: take it from the machine's own configuration"})
			}
		}
	}
	return out
}
