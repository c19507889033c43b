package expect

import (
	"reflect"

	"github.com/rocebed/rocebed/testbed/record"
)

// seen are the structs that expressions see, by the names in their tags "cel".
var seen = []any{reflect.TypeFor[record.Workload](), reflect.TypeFor[record.Latency](), reflect.TypeFor[record.Flow](), reflect.TypeFor[record.Fault](), reflect.TypeFor[record.Recovery]()}

// fieldNames are all fields that expressions can select.
func fieldNames() []string {
	var names []string
	for _, t := range seen {
		for i := range t.(reflect.Type).NumField() {
			names = append(names, t.(reflect.Type).Field(i).Tag.Get("cel"))
		}
	}
	return names
}
