package packet

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestTheDocumentationNamesEveryKeyClassAndVerb(t *testing.T) {
	b, err := os.ReadFile("../../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	words := ClassNames()
	for f := range reflect.TypeFor[Match]().Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		words = append(words, key)
	}
	words = append(words, codepoints...)
	for name := range luminaTypes {
		words = append(words, name)
	}
	for _, w := range words {
		if !strings.Contains(string(b), "`"+w+"`") {
			t.Errorf("docs/faults.md doesn't name `%s`", w)
		}
	}
	for _, v := range Verbs() {
		if !strings.Contains(string(b), "`"+string(v)) {
			t.Errorf("docs/faults.md doesn't name `%s`", v)
		}
	}
}
