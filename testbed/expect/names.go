package expect

import "reflect"

// fieldNames are all fields that expressions can select.
func fieldNames() []string {
	var names []string
	for _, t := range []reflect.Type{reflect.TypeFor[Workload](), reflect.TypeFor[Latency](), reflect.TypeFor[Flow](), reflect.TypeFor[Fault]()} {
		for i := range t.NumField() {
			names = append(names, t.Field(i).Tag.Get("cel"))
		}
	}
	return names
}
