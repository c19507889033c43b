package faults

import (
	"os"
	"strings"
	"testing"
)

func TestTheDocumentationIsGeneratedFromTheDefinitions(t *testing.T) {
	page, err := os.ReadFile("../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), strings.TrimSpace(Markdown())) {
		t.Error("docs/faults.md is not what the definitions say: go generate ./faults")
	}
}
