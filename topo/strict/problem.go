package strict

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing wrong at one place of a file.
type Problem struct {
	File string
	Line int    // from 1; 0: nowhere in particular
	Col  int    // from 1, in characters
	Path string // the key's path, such as topology.links[3]; empty at the top
	Err  error  // what is wrong, without the place
}

// Error is "file:line:column: what is wrong".
func (p *Problem) Error() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %v", p.File, p.Err)
	}
	return fmt.Sprintf("%s:%d:%d: %v", p.File, p.Line, p.Col, p.Err)
}

// Unwrap gives the error without its place.
func (p *Problem) Unwrap() error { return p.Err }

// Problems is everything found wrong with a file, sorted by place. It is never empty as an error.
type Problems []*Problem

// Error has a line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As and errors.Is look at each problem.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return ps
}

// PathError is a problem of a value that knows its key's path but not its file: what code
// that validates a decoded struct returns. Document.Locate gives it its place.
type PathError struct {
	Path string // relative to the struct that was validated, such as links[3]
	Err  error
}

// Error is "path: what is wrong".
func (e *PathError) Error() string {
	if e.Path == "" {
		return e.Err.Error()
	}
	return e.Path + ": " + e.Err.Error()
}

// Unwrap gives the error without its path.
func (e *PathError) Unwrap() error { return e.Err }

// At makes a PathError.
func At(path, format string, args ...any) error {
	return &PathError{Path: path, Err: fmt.Errorf(format, args...)}
}

// Under puts prefix before the path of every PathError in err (which may be joined errors),
// so that a part's errors become the whole's. Errors without a path get the prefix as theirs.
func Under(prefix string, err error) error {
	if err == nil {
		return nil
	}
	var out []error
	for _, e := range flatten(err) {
		var pe *PathError
		if errors.As(e, &pe) {
			out = append(out, &PathError{Path: Join(prefix, pe.Path), Err: pe.Err})
		} else {
			out = append(out, &PathError{Path: prefix, Err: e})
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	return errors.Join(out...)
}

// Join puts two paths together: Join("a", "b[0]") is "a.b[0]", Join("a", "[0]") is "a[0]".
func Join(a, b string) string {
	if a == "" || b == "" || strings.HasPrefix(b, "[") {
		return a + b
	}
	return a + "." + b
}

// flatten takes joined errors apart, down to those that are no joins.
func flatten(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range many.Unwrap() {
			out = append(out, flatten(e)...)
		}
		return out
	}
	return []error{err}
}
