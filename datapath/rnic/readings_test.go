package rnic

import (
	"reflect"
	"slices"
	"testing"
)

// Every counter there is can be read, under a name of its own.
func TestEveryCounterIsRead(t *testing.T) {
	var c Counters
	want := uint64(0)
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i))
			}
		case reflect.Array:
			for i := range v.Len() {
				fill(v.Index(i))
			}
		default:
			want++
			v.SetUint(want)
		}
	}
	fill(reflect.ValueOf(&c).Elem())
	names, values := map[string]bool{}, map[uint64]bool{}
	for _, r := range c.Readings() {
		if names[r.Name] || r.Help == "" || !slices.Contains([]string{"packets", "frames", "bytes", "ns", "events", "messages"}, r.Unit) {
			t.Errorf("%+v", r)
		}
		names[r.Name], values[r.Value] = true, true
	}
	for v := range want {
		if !values[v+1] {
			t.Errorf("field %d of Counters is never read", v+1)
		}
	}
	if uint64(len(names)) != want {
		t.Errorf("%d readings of %d counters", len(names), want)
	}
}
