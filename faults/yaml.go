package faults

import (
	"encoding"
	"reflect"
	"strings"
	"time"
)

// MarshalYAML writes the keys that are given, and no others: what strict.Decode reads back.
func (s Spec) MarshalYAML() (any, error) { return plain(reflect.ValueOf(s)) }

// plain is a value as maps, lists and scalars.
func plain(v reflect.Value) (any, error) {
	if v.Type() == reflect.TypeFor[time.Duration]() {
		return v.Interface().(time.Duration).String(), nil
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		return string(text), err
	}
	switch v.Kind() {
	case reflect.Pointer:
		return plain(v.Elem())
	case reflect.Struct:
		out := map[string]any{}
		for _, f := range reflect.VisibleFields(v.Type()) {
			name, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if field := v.FieldByIndex(f.Index); opts != "inline" && !field.IsZero() {
				value, err := plain(field)
				if err != nil {
					return nil, err
				}
				out[name] = value
			}
		}
		return out, nil
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			var err error
			if out[i], err = plain(v.Index(i)); err != nil {
				return nil, err
			}
		}
		return out, nil
	case reflect.Map:
		out := map[string]any{}
		for _, k := range v.MapKeys() {
			value, err := plain(v.MapIndex(k))
			if err != nil {
				return nil, err
			}
			out[k.String()] = value
		}
		return out, nil
	}
	return v.Interface(), nil
}
