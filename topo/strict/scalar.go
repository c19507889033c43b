package strict

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

var durationType = reflect.TypeFor[time.Duration]()

// text is a scalar as it was written, without quotes.
func text(s ast.ScalarNode) string {
	switch x := s.(type) {
	case *ast.LiteralNode:
		if x.Value == nil {
			return ""
		}
		return x.Value.Value
	case *ast.StringNode:
		return x.Value
	}
	if tk := s.GetToken(); tk != nil {
		return tk.Value
	}
	return ""
}

// setScalar puts a scalar into a duration, string, bool or number.
func setScalar(s ast.ScalarNode, v reflect.Value) error {
	t := text(s)
	want := func() error { return fmt.Errorf("want %s, got %s", wanted(v.Type()), describe(s)) }
	if v.Type() == durationType {
		dur, err := ParseDuration(t)
		if err != nil {
			return err
		}
		v.SetInt(int64(dur))
		return nil
	}
	_, isString := s.(*ast.StringNode)
	_, isLiteral := s.(*ast.LiteralNode)
	quoted := isString || isLiteral
	switch v.Kind() {
	case reflect.String:
		if !quoted {
			return fmt.Errorf("want a text, got %s (put it in quotes)", describe(s))
		}
		v.SetString(t)
	case reflect.Bool:
		b, ok := s.(*ast.BoolNode)
		if !ok {
			return want()
		}
		v.SetBool(b.Value)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if quoted {
			return want()
		}
		n, err := strconv.ParseInt(t, 0, 64)
		if err != nil || v.OverflowInt(n) {
			return want()
		}
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if quoted {
			return want()
		}
		n, err := strconv.ParseUint(t, 0, 64)
		if err != nil || v.OverflowUint(n) {
			return want()
		}
		v.SetUint(n)
	case reflect.Float32, reflect.Float64:
		if quoted {
			return want()
		}
		f, err := strconv.ParseFloat(t, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return want()
		}
		v.SetFloat(f)
	default:
		return fmt.Errorf("strict: can't decode into %s", v.Type())
	}
	return nil
}

// MaxDuration is the longest time that a scenario may name: sums of many still fit a
// time.Duration, so that schedules need not look for overflow.
const MaxDuration = 1000 * time.Hour

// ParseDuration reads "2us", "1.5ms", "1h2m"; 0 needs no unit. Negative ones are refused, and
// those above MaxDuration.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		hint := ""
		if _, nerr := strconv.ParseFloat(s, 64); nerr == nil {
			hint = ": it lacks a unit"
		}
		return 0, fmt.Errorf("%q is not a duration%s (units: ns us ms s m h, such as \"2us\")", s, hint)
	case d < 0:
		return 0, errors.New("a duration can't be negative")
	case d > MaxDuration:
		return 0, fmt.Errorf("%s is longer than anything here may last (%v)", s, MaxDuration)
	}
	return d, nil
}

// free decodes a value of any shape into an empty interface: map[string]any, []any, string,
// bool, int64, uint64 or float64.
func (d *decoder) free(n ast.Node, v reflect.Value, path string) {
	if m, ok := mapping(n); ok {
		out := map[string]any{}
		d.table(m, reflect.ValueOf(&out).Elem(), path)
		v.Set(reflect.ValueOf(out))
		return
	}
	switch x := n.(type) {
	case *ast.SequenceNode:
		out := []any{}
		d.list(x, reflect.ValueOf(&out).Elem(), path)
		v.Set(reflect.ValueOf(out))
	case *ast.IntegerNode:
		v.Set(reflect.ValueOf(x.Value))
	case *ast.FloatNode:
		v.Set(reflect.ValueOf(x.Value))
	case *ast.BoolNode:
		v.Set(reflect.ValueOf(x.Value))
	case ast.ScalarNode:
		v.Set(reflect.ValueOf(text(x)))
	default:
		d.wrong(n, path, "a value")
	}
}

// wanted says in words what a type is written as.
func wanted(t reflect.Type) string {
	if t == durationType {
		return `a duration such as "2us"`
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Int8, reflect.Int16, reflect.Int32:
		half := int64(1) << (t.Bits() - 1)
		return fmt.Sprintf("a whole number from %d to %d", -half, half-1)
	case reflect.Uint, reflect.Uint64:
		return "a whole number, not negative"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return fmt.Sprintf("a whole number from 0 to %d", uint64(1)<<t.Bits()-1)
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a text"
}

// describe says in words what stands in the file.
func describe(n ast.Node) string {
	if n == nil {
		return "nothing"
	}
	if _, ok := mapping(n); ok {
		return "keys with values"
	}
	switch x := n.(type) {
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "nothing"
	case *ast.StringNode, *ast.LiteralNode:
		return strconv.Quote(clip(text(x.(ast.ScalarNode))))
	case ast.ScalarNode:
		return clip(text(x))
	}
	return strings.ToLower(n.Type().String())
}

func clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

// place is where a node's own text begins; the library's token of a mapping is its colon.
func place(n ast.Node) position {
	for range maxDepth {
		switch x := n.(type) {
		case nil:
			return position{}
		case *ast.MappingNode:
			if x.IsFlowStyle || len(x.Values) == 0 {
				return tokenPlace(n)
			}
			n = x.Values[0]
		case *ast.MappingValueNode:
			if x.Key == nil {
				return tokenPlace(n)
			}
			n = x.Key
		default:
			return tokenPlace(n)
		}
	}
	return position{}
}

func tokenPlace(n ast.Node) position {
	tk := n.GetToken()
	if tk == nil || tk.Position == nil {
		return position{}
	}
	return position{max(1, tk.Position.Line), max(1, tk.Position.Column)}
}
