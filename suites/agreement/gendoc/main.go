// Gendoc takes figures (JSON, a line each, as measure prints them), holds them against the yardstick's among them, and writes the tables
// into a page, or prints them as JSON. It fails where something is outside its tolerance, and says what.
//
//	gendoc [-json] [-text] [-merge] [FILE] <FIGURES
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/rocebed/rocebed/suites/agreement"
	"github.com/rocebed/rocebed/testbed/compare"
)

func main() {
	asJSON := flag.Bool("json", false, "print the table as JSON")
	asText := flag.Bool("text", false, "print it as a page would have it")
	merge := flag.Bool("merge", false, "leave the page's rows of what was not measured")
	flag.Parse()
	if err := run(*asJSON, *asText, *merge, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "agreement:", err)
		os.Exit(1)
	}
}

func run(asJSON, asText, merge bool, page string) error {
	var all []*agreement.Figures
	in := json.NewDecoder(os.Stdin)
	for {
		f := &agreement.Figures{}
		err := in.Decode(f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read figures: %w", err)
		}
		all = append(all, f)
	}
	t := agreement.NewTable(all)
	if asJSON {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		if err := out.Encode(t); err != nil {
			return err
		}
	}
	if asText {
		fmt.Print(t.Markdown(), "\n", t.ClaimsMarkdown())
	}
	if page != "" {
		if err := write(page, t, merge); err != nil {
			return err
		}
	}
	misses := t.Misses()
	for _, m := range misses {
		fmt.Fprintln(os.Stderr, m)
	}
	if len(misses) > 0 {
		return fmt.Errorf("%d figures are outside their tolerance", len(misses))
	}
	return nil
}

func write(page string, t *agreement.Table, merge bool) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	out := string(text)
	figures, claims := t.Markdown(), t.ClaimsMarkdown()
	if merge {
		figures = agreement.MergeFigures(compare.Inside(out, "figures"), figures)
		claims = agreement.MergeClaims(compare.Inside(out, "claims"), claims)
	}
	for _, b := range []struct{ name, content string }{{"figures", figures}, {"claims", claims}, {"tolerances", agreement.TolerancesMarkdown()}} {
		if out, err = compare.Block(out, b.name, b.content); err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
	}
	return os.WriteFile(page, []byte(out), 0o644)
}
