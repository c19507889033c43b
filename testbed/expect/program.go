package expect

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/topo/strict"
)

// Problem is what is wrong with an expression. Line and Column are in the expression and
// count from 1.
type Problem struct {
	Line, Column int
	Text         string
	Suggestion   string // the name that was probably meant, or empty
}

func (p Problem) Error() string {
	if p.Suggestion == "" {
		return p.Text
	}
	return fmt.Sprintf("%s (did you mean %q?)", p.Text, p.Suggestion)
}

// Program is an expression that is known to make sense.
type Program struct {
	env  *Env
	text string
	ast  *cel.Ast
	prog cel.Program
}

// Compile checks an expression: syntax, types, and every name in it. It says all that is
// wrong, in order of place.
func (e *Env) Compile(text string) (*Program, []Problem) {
	checked, iss := e.cel.Compile(text)
	if iss.Err() != nil {
		var out []Problem
		for _, err := range iss.Errors() {
			p := Problem{Line: err.Location.Line(), Column: err.Location.Column() + 1, Text: err.Message}
			p.Suggestion = e.suggestFor(err.Message)
			out = append(out, p)
		}
		return nil, out
	}
	problems := e.checkNames(checked)
	if t := checked.OutputType(); !t.IsExactType(types.BoolType) {
		problems = append(problems, Problem{Line: 1, Column: 1, Text: fmt.Sprintf("an expectation must be true or false, this is %s: compare it with something", t)})
	}
	if len(problems) > 0 {
		return nil, problems
	}
	prog, err := e.cel.Program(checked, cel.EvalOptions(cel.OptExhaustiveEval), cel.InterruptCheckFrequency(256))
	if err != nil {
		return nil, []Problem{{Line: 1, Column: 1, Text: err.Error()}}
	}
	return &Program{env: e, text: text, ast: checked, prog: prog}, nil
}

var (
	undefinedField = regexp.MustCompile(`undefined field '(\w+)'`)
	undeclared     = regexp.MustCompile(`undeclared reference to '(\w+)'`)
)

// suggestFor finds the name that a type error's text probably meant.
func (e *Env) suggestFor(message string) string {
	if m := undefinedField.FindStringSubmatch(message); m != nil {
		return strict.Nearest(m[1], fieldNames())
	}
	if m := undeclared.FindStringSubmatch(message); m != nil {
		names := []string{"workloads", "faults", "rate", "bytesize", "share", "duration"}
		return strict.Nearest(m[1], append(names, slices.Sorted(maps.Keys(metricFunctions))...))
	}
	return ""
}

// checkNames finds workloads, faults, metrics, labels and nodes that don't exist.
func (e *Env) checkNames(checked *cel.Ast) []Problem {
	native := checked.NativeRep()
	var problems []Problem
	add := func(at ast.Expr, suggestion, format string, args ...any) {
		p := Problem{Line: 1, Column: 1, Text: fmt.Sprintf(format, args...), Suggestion: suggestion}
		if loc := native.SourceInfo().GetStartLocation(at.ID()); loc.Line() > 0 {
			p.Line, p.Column = loc.Line(), loc.Column()+1
		}
		problems = append(problems, p)
	}
	ast.PreOrderVisit(native.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		if x.Kind() != ast.CallKind {
			return
		}
		call := x.AsCall()
		args := call.Args()
		if call.FunctionName() == operators.Index && args[0].Kind() == ast.IdentKind {
			name, ok := literal(args[1])
			known := e.names.Workloads
			if args[0].AsIdent() == "faults" {
				known = e.names.Faults
			} else if args[0].AsIdent() != "workloads" {
				return
			}
			if ok && !slices.Contains(known, name) {
				add(args[1], strict.Nearest(name, known), "there is no %s %q in this scenario", strings.TrimSuffix(args[0].AsIdent(), "s"), name)
			}
			return
		}
		switch call.FunctionName() {
		case "rate", "bytesize", "share":
			e.checkUnit(call.FunctionName(), args[0], add)
		}
		if _, ok := metricFunctions[call.FunctionName()]; ok {
			e.checkMetricCall(call, add)
		}
	}))
	return problems
}

func (e *Env) checkUnit(fn string, arg ast.Expr, add func(ast.Expr, string, string, ...any)) {
	text, ok := literal(arg)
	if !ok {
		return
	}
	// What the function would say at the end of the run, said now.
	program, iss := e.cel.Compile(fmt.Sprintf("%s(%q)", fn, text))
	if iss.Err() != nil {
		return
	}
	p, err := e.cel.Program(program)
	if err != nil {
		return
	}
	if _, _, err := p.Eval(cel.NoVars()); err != nil {
		add(arg, "", "%s", strings.TrimPrefix(err.Error(), "evaluation error: "))
	}
}

func (e *Env) checkMetricCall(call ast.CallExpr, add func(ast.Expr, string, string, ...any)) {
	args := call.Args()
	name, ok := literal(args[0])
	if !ok {
		add(args[0], "", "%s wants the metric's name as a literal string", call.FunctionName())
		return
	}
	desc, ok := e.names.Metrics.Lookup(name)
	if ours, how, known := metrics.Elsewhere(name); !ok && known {
		switch {
		case ours == "":
			add(args[0], "", "there is no metric %q: %s", name, how)
		case how == "":
			add(args[0], ours, "there is no metric %q here", name)
		default:
			add(args[0], ours, "there is no metric %q here; the nearest is %s, %s", name, ours, how)
		}
		return
	}
	if !ok {
		add(args[0], strict.Nearest(name, e.names.Metrics.Names()), "there is no metric %q (docs/metrics.md lists them)", name)
		return
	}
	if desc.Kind == metrics.Gauge && call.FunctionName() == "delta" {
		add(args[0], "", "%s is a gauge, it goes up and down: use max, min or mean", name)
	}
	if len(args) < 2 || args[1].Kind() != ast.MapKind {
		return
	}
	for _, entry := range args[1].AsMap().Entries() {
		m := entry.AsMapEntry()
		label, ok := literal(m.Key())
		if !ok {
			continue
		}
		if !slices.Contains(desc.Labels, label) {
			add(m.Key(), strict.Nearest(label, desc.Labels), "%s has no label %q, only %s", name, label, strings.Join(desc.Labels, ", "))
			continue
		}
		known, noun := map[string][]string{"node": e.names.Nodes, "workload": e.names.Workloads, "fault": e.names.Faults}[label], label
		if value, ok := literal(m.Value()); ok && known != nil && !strings.ContainsAny(value, `*?[\`) && !slices.Contains(known, value) {
			add(m.Value(), strict.Nearest(value, known), "there is no %s %q in this scenario", noun, value)
		}
	}
}

func literal(x ast.Expr) (string, bool) {
	if x.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := x.AsLiteral().(types.String)
	return string(s), ok
}
