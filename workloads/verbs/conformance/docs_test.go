package conformance

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestTheDocsListRxesDeparturesAsTheyAre(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/verbs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(doc), "| --- | --- | --- |\n| GRH")
	if !found {
		t.Fatal("docs/verbs.md has no table of departures")
	}
	table = "| GRH" + table
	var want strings.Builder
	for _, d := range Rxe {
		fmt.Fprintf(&want, "| %s | %s | %s |\n", d.ID, d.Spec, d.Actual)
	}
	if !strings.HasPrefix(table, want.String()) {
		t.Errorf("docs/verbs.md should have, in this order:\n%s", want.String())
	}
}
