package strict

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Decode reads one YAML document into out, a pointer to a struct. Its error is Problems.
//
// Fields are named by `yaml:"name"` (without a tag: the lower-cased field name); `yaml:"-"`
// skips a field, `yaml:",inline"` takes a struct's keys as the outer's own, and
// `yaml:"name,required"` makes an absent key a problem, and `yaml:"name,nonzero"` a zero that is
// written out where the zero value means a default. Keys that the file leaves out leave
// their fields as they were: defaults are what the caller put there.
//
// A scalar goes into an encoding.TextUnmarshaler by its text. A type that is both that and a
// struct may be written either way, short or long. A time.Duration needs a unit ("2us").
// Durations are never negative in a scenario, and a key without a value is a problem.
func Decode(file string, data []byte, out any) error {
	_, err := Read(file, data, out)
	return err
}

// Read is Decode, and gives the document, so that callers can say where a value stood. The
// document is there even with an error, for problems that follow from it.
func Read(file string, data []byte, out any) (*Document, error) {
	doc := &Document{file: file, pos: map[string]position{}}
	v := reflect.ValueOf(out)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return doc, Problems{{File: file, Err: fmt.Errorf("strict: can't decode into %T, only into a pointer to a struct", out)}}
	}
	body, err := parse(file, data)
	if err != nil {
		doc.unread = true
		return doc, Problems{err.(*Problem)}
	}
	d := &decoder{doc: doc, anchors: map[string]ast.Node{}, open: map[string]bool{}}
	d.safely(body, v.Elem())
	if len(d.problems) > 0 {
		return doc, d.problems.sorted()
	}
	return doc, nil
}

type decoder struct {
	doc      *Document
	problems Problems
	anchors  map[string]ast.Node
	open     map[string]bool // aliases being expanded
	nodes    int
	depth    int
	full     bool // a limit was passed: nothing more is decoded
}

func (d *decoder) safely(body ast.Node, v reflect.Value) {
	defer func() {
		if r := recover(); r != nil {
			d.complain(body, "", "can't be decoded (%v)", r)
		}
	}()
	d.value(body, v, "")
}

func (d *decoder) complain(n ast.Node, path, format string, args ...any) {
	p := place(n)
	if p.line == 0 {
		p.line, p.col = d.doc.Pos(path)
	}
	d.problems = append(d.problems, &Problem{File: d.doc.file, Line: p.line, Col: p.col, Path: path, Err: fmt.Errorf(format, args...)})
}

// wrong is a complaint about a value: the path, what was wanted and what is there.
func (d *decoder) wrong(n ast.Node, path, want string) {
	d.complain(n, path, "%swant %s, got %s", prefixed(path), want, describe(n))
}

func prefixed(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

var (
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (d *decoder) value(n ast.Node, v reflect.Value, path string) {
	d.nodes++
	if d.full {
		return
	}
	if d.nodes > maxNodes || d.depth > maxDepth {
		d.full = true
		d.complain(n, path, "%snested or repeated too much", prefixed(path))
		return
	}
	d.depth++
	defer func() { d.depth-- }()

	n, done := d.resolve(n, path)
	defer done()
	if n == nil {
		return
	}
	if n.Type() == ast.NullType {
		d.complain(n, path, "%shas no value (leave the key out, or give it one)", prefixed(path))
		return
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.value(n, v.Elem(), path)
		return
	}
	s, scalar := n.(ast.ScalarNode)
	if scalar && v.CanAddr() && v.Addr().Type().Implements(textUnmarshaler) {
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text(s))); err != nil {
			d.complain(n, path, "%s%w", prefixed(path), err)
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if m, ok := mapping(n); ok {
			d.structure(n, m, v, path)
			return
		}
		d.wrong(n, path, "keys with values")
	case reflect.Map:
		if m, ok := mapping(n); ok && v.Type().Key().Kind() == reflect.String {
			d.table(m, v, path)
			return
		}
		d.wrong(n, path, "keys with values")
	case reflect.Slice:
		if l, ok := n.(*ast.SequenceNode); ok {
			d.list(l, v, path)
			return
		}
		d.wrong(n, path, "a list")
	case reflect.Interface:
		if v.NumMethod() == 0 {
			d.free(n, v, path)
			return
		}
		d.complain(n, path, "strict: can't decode into %s", v.Type())
	default:
		if !scalar {
			d.wrong(n, path, wanted(v.Type()))
			return
		}
		if err := setScalar(s, v); err != nil {
			d.complain(n, path, "%s%w", prefixed(path), err)
		}
	}
}

// resolve looks through anchors and aliases. Its second result must be called when the value
// has been decoded.
func (d *decoder) resolve(n ast.Node, path string) (ast.Node, func()) {
	nothing := func() {}
	for range maxDepth {
		switch x := n.(type) {
		case nil:
			d.complain(nil, path, "%shas no value (leave the key out, or give it one)", prefixed(path))
			return nil, nothing
		case *ast.AnchorNode:
			if x.Name != nil {
				d.anchors[x.Name.GetToken().Value] = x.Value
			}
			n = x.Value
		case *ast.AliasNode:
			name := ""
			if x.Value != nil {
				name = x.Value.GetToken().Value
			}
			target, ok := d.anchors[name]
			if !ok {
				d.complain(n, path, "%sno anchor &%s before here", prefixed(path), name)
				return nil, nothing
			}
			if d.open[name] {
				d.complain(n, path, "%sthe anchor &%s contains itself", prefixed(path), name)
				return nil, nothing
			}
			d.open[name] = true
			target, inner := d.resolve(target, path)
			return target, func() { inner(); delete(d.open, name) }
		case *ast.TagNode:
			d.complain(n, path, "%stags such as %s aren't used here", prefixed(path), x.Start.Value)
			return nil, nothing
		default:
			return n, nothing
		}
	}
	d.complain(n, path, "%snested too much", prefixed(path))
	return nil, nothing
}

// mapping gives a mapping's entries; the library has a node of its own for a single entry.
func mapping(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch x := n.(type) {
	case *ast.MappingNode:
		return x.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{x}, true
	}
	return nil, false
}

// entries calls each for every key that stands once, having noted its place.
func (d *decoder) entries(m []*ast.MappingValueNode, path string, each func(key string, kv *ast.MappingValueNode)) {
	first := map[string]int{}
	for _, kv := range m {
		if kv.Key == nil || kv.Key.IsMergeKey() {
			d.complain(kv, path, "%smerge keys aren't used here", prefixed(path))
			continue
		}
		s, ok := ast.Node(kv.Key).(ast.ScalarNode)
		if !ok {
			d.complain(kv.Key, path, "%sa key must be a plain word, got %s", prefixed(path), describe(kv.Key))
			continue
		}
		key, p := text(s), place(kv.Key)
		if line, twice := first[key]; twice {
			d.complain(kv.Key, Join(path, key), "key %q given twice (first on line %d)", key, line)
			continue
		}
		first[key] = p.line
		d.doc.pos[Join(path, key)] = p
		each(key, kv)
	}
}

func (d *decoder) structure(n ast.Node, m []*ast.MappingValueNode, v reflect.Value, path string) {
	fields := fieldsOf(v)
	given := map[string]bool{}
	d.entries(m, path, func(key string, kv *ast.MappingValueNode) {
		given[key] = true
		for _, f := range fields {
			if f.name == key {
				before := len(d.problems)
				d.value(kv.Value, f.value, Join(path, key))
				if f.nonzero && f.value.IsZero() && len(d.problems) == before {
					d.complain(kv.Value, Join(path, key), "%smust be above 0 (leave the key out for the default)", prefixed(Join(path, key)))
				}
				return
			}
		}
		names := make([]string, len(fields))
		for i, f := range fields {
			names[i] = f.name
		}
		where := ""
		if path != "" {
			where = " in " + path
		}
		d.complain(kv.Key, Join(path, key), "unknown key %q%s%s", key, where, DidYouMean(key, names))
	})
	for _, f := range fields {
		if f.required && !given[f.name] {
			line, col := d.doc.Pos(path)
			if p := place(n); path == "" && p.line > 0 {
				line, col = p.line, p.col
			}
			d.problems = append(d.problems, &Problem{File: d.doc.file, Line: line, Col: col, Path: path,
				Err: fmt.Errorf("%skey %q is missing", prefixed(path), f.name)})
		}
	}
}

func (d *decoder) table(m []*ast.MappingValueNode, v reflect.Value, path string) {
	out := reflect.MakeMapWithSize(v.Type(), len(m))
	d.entries(m, path, func(key string, kv *ast.MappingValueNode) {
		e := reflect.New(v.Type().Elem()).Elem()
		d.value(kv.Value, e, Join(path, key))
		out.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), e)
	})
	v.Set(out)
}

func (d *decoder) list(l *ast.SequenceNode, v reflect.Value, path string) {
	out := reflect.MakeSlice(v.Type(), len(l.Values), len(l.Values))
	for i, item := range l.Values {
		p := fmt.Sprintf("%s[%d]", path, i)
		if at := place(item); at.line > 0 {
			d.doc.pos[p] = at
		}
		d.value(item, out.Index(i), p)
	}
	v.Set(out)
}

// field is a key of a struct.
type field struct {
	name     string
	value    reflect.Value
	required bool
	nonzero  bool
}

func fieldsOf(v reflect.Value) []field {
	var out []field
	for sf, fv := range v.Fields() {
		if !sf.IsExported() && !sf.Anonymous {
			continue
		}
		name, opts, _ := strings.Cut(sf.Tag.Get("yaml"), ",")
		switch {
		case name == "-":
		case opts == "inline" && fv.Kind() == reflect.Struct:
			out = append(out, fieldsOf(fv)...)
		case !sf.IsExported():
		case name == "":
			out = append(out, field{strings.ToLower(sf.Name), fv, opts == "required", opts == "nonzero"})
		default:
			out = append(out, field{name, fv, opts == "required", opts == "nonzero"})
		}
	}
	return out
}
