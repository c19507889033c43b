package faults

import (
	"os"
	"testing"
)

func TestTheDocumentationIsGeneratedFromTheDefinitions(t *testing.T) {
	page, err := os.ReadFile("../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := Splice(string(page))
	if err != nil {
		t.Fatal(err)
	}
	if want != string(page) {
		t.Error("docs/faults.md is not what the definitions say: go generate ./faults")
	}
}
