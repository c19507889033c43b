package expect

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/rocebed/rocebed/testbed/record"
)

// patience is how long evaluating an expectation may last, in wall time. What runs to its end takes
// milliseconds; macros inside macros can be written to last for ever.
var patience = 10 * time.Second

// Verdict is what became of one expectation.
type Verdict = record.Expectation

// Text is the expression as it was written.
func (p *Program) Text() string { return p.text }

// Eval says whether the expectation holds of what a run produced.
func (p *Program) Eval(v Values) Verdict {
	p.env.mu.Lock()
	defer p.env.mu.Unlock()
	p.env.table = v.Metrics
	vars := map[string]any{"workloads": v.Workloads, "faults": v.Faults}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, details, err := p.prog.ContextEval(ctx, vars)
	if ctx.Err() != nil {
		err = fmt.Errorf("given up after %v: macros inside macros multiply what there is to do", patience)
	}
	verdict := Verdict{Expr: p.text}
	if details != nil {
		verdict.Values = p.seen(details.State(), vars)
	}
	switch {
	case err != nil:
		verdict.Err = err.Error()
	default:
		verdict.Passed = out == types.True
	}
	return verdict
}

// seen lists the outermost parts whose values decide: selections, and calls of functions
// that aren't operators. Literals say nothing that the expression doesn't. What stands in a
// macro over all workloads or faults is listed for each of them.
func (p *Program) seen(state interpreter.EvalState, vars map[string]any) []record.Value {
	var out []record.Value
	had := map[string]bool{}
	add := func(text string, val ref.Val) {
		if !had[text] {
			had[text] = true
			out = append(out, record.Value{Expr: text, Value: show(val)})
		}
	}
	over := map[string][]string{} // loop variables: what they run over
	var visit func(x ast.Expr)
	visit = func(x ast.Expr) {
		val, ok := state.Value(x.ID())
		leaf := false
		switch x.Kind() {
		case ast.SelectKind:
			leaf = true
		case ast.CallKind:
			name := x.AsCall().FunctionName()
			_, metric := metricFunctions[name]
			leaf = metric || name == operators.Index
			if !leaf {
				if t := x.AsCall().Target(); x.AsCall().IsMemberFunction() {
					visit(t)
				}
				for _, a := range x.AsCall().Args() {
					visit(a)
				}
				return
			}
		case ast.ComprehensionKind:
			loop := x.AsComprehension()
			visit(loop.IterRange())
			if names := p.env.named(loop.IterRange()); names != nil {
				over[loop.IterVar()] = names
				visit(loop.LoopStep())
				delete(over, loop.IterVar())
			}
			return
		case ast.ListKind:
			for _, el := range x.AsList().Elements() {
				visit(el)
			}
			return
		}
		if !leaf || !ok {
			return
		}
		text, err := cel.ExprToString(x, p.ast.NativeRep().SourceInfo())
		if err != nil {
			return
		}
		for loop, names := range over {
			index := "[" + loop + "]"
			if !strings.Contains(text, index) {
				continue
			}
			for _, name := range names {
				one := strings.ReplaceAll(text, index, fmt.Sprintf("[%q]", name))
				if val, ok := p.env.value(one, vars); ok {
					add(one, val)
				}
			}
			return
		}
		if len(over) == 0 {
			add(text, val)
		}
	}
	visit(p.ast.NativeRep().Expr())
	return out
}

// named are the names that a macro over the workloads or the faults goes through; nil for one
// over anything else.
func (e *Env) named(x ast.Expr) []string {
	if x.Kind() != ast.IdentKind {
		return nil
	}
	return map[string][]string{"workloads": e.names.Workloads, "faults": e.names.Faults}[x.AsIdent()]
}

func (e *Env) value(text string, vars map[string]any) (ref.Val, bool) {
	parsed, iss := e.cel.Compile(text)
	if iss.Err() != nil {
		return nil, false
	}
	program, err := e.cel.Program(parsed)
	if err != nil {
		return nil, false
	}
	val, _, err := program.Eval(vars)
	return val, err == nil
}

// show prints a value as a reader would write it.
func show(v ref.Val) string {
	switch x := v.(type) {
	case types.Duration:
		return x.Duration.String()
	case types.String:
		return fmt.Sprintf("%q", string(x))
	case types.Double:
		return fmt.Sprintf("%.6g", float64(x))
	case *types.Err:
		return "error: " + x.Error()
	case *types.Unknown:
		return "unknown"
	}
	text := fmt.Sprintf("%+v", v.Value())
	if len(text) > 400 {
		text = text[:400] + " …"
	}
	return text
}
