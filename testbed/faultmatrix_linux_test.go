package testbed

import (
	"os"
	"testing"

	"github.com/rocebed/rocebed/testbed/compare"
)

func TestTheDocumentationSaysWhichBackendCanWhichFault(t *testing.T) {
	page, err := os.ReadFile("../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := compare.Block(string(page), "abilities", FaultMatrix().Markdown())
	if err != nil {
		t.Fatal(err)
	}
	if text != string(page) {
		t.Error("docs/faults.md is not what the backends say of the faults: go generate ./faults")
	}
}
