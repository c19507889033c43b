package expect

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/rocebed/rocebed/testbed/record"
)

// Verdict is what became of one expectation.
type Verdict = record.Expectation

// Text is the expression as it was written.
func (p *Program) Text() string { return p.text }

// Eval says whether the expectation holds of what a run produced.
func (p *Program) Eval(v Values) Verdict {
	p.env.mu.Lock()
	defer p.env.mu.Unlock()
	p.env.table = v.Metrics
	out, details, err := p.prog.Eval(map[string]any{"workloads": v.Workloads, "faults": v.Faults})
	verdict := Verdict{Expr: p.text}
	if details != nil {
		verdict.Values = p.seen(details.State())
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
// that aren't operators. Literals say nothing that the expression doesn't.
func (p *Program) seen(state interpreter.EvalState) []record.Value {
	var out []record.Value
	had := map[string]bool{}
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
			visit(x.AsComprehension().IterRange())
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
		if err != nil || had[text] {
			return
		}
		had[text] = true
		out = append(out, record.Value{Expr: text, Value: show(val)})
	}
	visit(p.ast.NativeRep().Expr())
	return out
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
