package strict

import (
	"errors"
	"fmt"
	"strings"
)

// Document is a decoded file that knows where its keys stood.
type Document struct {
	file   string
	pos    map[string]position
	unread bool
}

type position struct{ line, col int }

// File is the name the document was read under.
func (d *Document) File() string { return d.file }

// Unread says that the file is no YAML document, so that nothing in it was looked at.
func (d *Document) Unread() bool { return d.unread }

// Has reports whether the file gave the key at path.
func (d *Document) Has(path string) bool {
	_, ok := d.pos[path]
	return ok
}

// Pos is the place of the key at path ("topology.links[3]"), or of its nearest ancestor in
// the file. A list's item has the place where it begins. The top of a file is 1, 1.
func (d *Document) Pos(path string) (line, col int) {
	for path != "" {
		if p, ok := d.pos[path]; ok {
			return p.line, p.col
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return 1, 1
}

// Errorf makes a problem at the place of the key at path.
func (d *Document) Errorf(path, format string, args ...any) *Problem {
	return d.problem(path, fmt.Errorf(format, args...))
}

// Locate gives every PathError in err (which may be joined errors) its place; prefix is the
// path of the part that was validated. Errors without a path go to the prefix's place.
// The result is nil or Problems, sorted by place.
func (d *Document) Locate(prefix string, err error) error {
	if err == nil {
		return nil
	}
	var ps Problems
	for _, e := range flatten(err) {
		if p, ok := errors.AsType[*Problem](e); ok {
			ps = append(ps, p)
			continue
		}
		path, what := prefix, e
		if pe, ok := errors.AsType[*PathError](e); ok {
			path, what = Join(prefix, pe.Path), pe.Err
		}
		ps = append(ps, d.problem(path, what))
	}
	return ps.sorted()
}

func (d *Document) problem(path string, err error) *Problem {
	line, col := d.Pos(path)
	return &Problem{File: d.file, Line: line, Col: col, Path: path, Err: err}
}
