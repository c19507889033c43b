package expect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/cel-go/cel"
)

// Number is what an expression comes to that is a number, or a duration in nanoseconds. It may name what an expectation may,
// and is refused for the same mistakes.
func (e *Env) Number(text string, v Values) (float64, error) {
	checked, iss := e.cel.Compile(text)
	if iss.Err() != nil {
		return 0, fmt.Errorf("%s: %w", text, iss.Err())
	}
	var errs []error
	for _, p := range e.checkNames(checked) {
		errs = append(errs, p)
	}
	if err := errors.Join(errs...); err != nil {
		return 0, fmt.Errorf("%s: %w", text, err)
	}
	prog, err := e.cel.Program(checked, cel.InterruptCheckFrequency(256))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", text, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.table = v.Metrics
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, _, err := prog.ContextEval(ctx, map[string]any{"workloads": v.Workloads, "faults": v.Faults})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", text, err)
	}
	switch x := out.Value().(type) {
	case int64:
		return float64(x), nil
	case uint64:
		return float64(x), nil
	case float64:
		return x, nil
	case time.Duration:
		return float64(x), nil
	}
	return 0, fmt.Errorf("%s: %s is no number", text, out.Type())
}
