package workloads

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestTheDocumentationNamesEveryKeyKindAndStatus(t *testing.T) {
	b, err := os.ReadFile("../docs/workloads.md")
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, s := range []reflect.Type{reflect.TypeFor[Spec](), reflect.TypeFor[QPSpec]()} {
		for f := range s.Fields() {
			key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			words = append(words, key)
		}
	}
	words = append(words, texts(kinds)...)
	words = append(words, Statuses()...)
	for _, w := range words {
		if w != "name" && !strings.Contains(string(b), "`"+w+"`") {
			t.Errorf("docs/workloads.md doesn't name `%s`", w)
		}
	}
}
