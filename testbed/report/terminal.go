package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/rocebed/rocebed/testbed/record"
)

// columns is what a terminal is taken to show.
const columns = 100

// maxWarnings is how many warnings a terminal gets to see.
const maxWarnings = 8

// Terminal writes the result tables. Colour is for terminals; without it the marks say all.
func Terminal(w io.Writer, s *record.Summary, colour bool) error {
	p := painter(colour)
	var b strings.Builder
	where := s.Backend
	if s.Guest {
		where += " in the guest"
	}
	verdict := p.good("PASS")
	if s.Verdict != record.Pass {
		verdict = p.bad("FAIL")
	}
	fmt.Fprintf(&b, "\n%s  %s  backend %s, %s, seed %d, %s of wall time\n", verdict, p.bold(s.Name), where, s.Clock(), s.Seed, Span(s.Wall))

	if len(s.Workloads) > 0 {
		t := table{head: []string{"", "workload", "kind", "bytes", "verified", "goodput", "p50", "p99", "errors", "retries"},
			right: map[int]bool{3: true, 4: true, 5: true, 6: true, 7: true, 8: true, 9: true}}
		for _, x := range s.Workloads {
			t.add(p.mark(x.Passed), clip(x.Name, 16), x.Kind, Bytes(x.Bytes), verified(x), Rate(x.GoodputBps),
				Span(x.Latency.P50), Span(x.Latency.P99), short(x.Errors), short(x.Retries))
		}
		b.WriteString("\n" + t.String())
		for _, x := range s.Workloads {
			if m := more(x); m != "" {
				b.WriteString("     " + wrap(x.Name+": "+m, columns-5, "     ") + "\n")
			}
		}
	}
	if len(s.Faults) > 0 {
		t := table{head: []string{"", "fault", "kind", "at", "strikes", "hits", "verified", "healed"}, right: map[int]bool{4: true, 5: true}}
		for _, x := range s.Faults {
			t.add(p.mark(len(x.Problems) == 0), clip(x.Name, 20), x.Kind, clip(strings.Join(x.At, " "), 28), Count(int64(x.Strikes)), Count(x.Hits), yes(x.Verified), yes(x.Healed))
		}
		b.WriteString("\n" + t.String())
		for _, x := range s.Faults {
			writeRecoveries(&b, x)
		}
	}
	if len(s.Counters) > 0 {
		t := table{head: []string{"counter", "grew by", "most at"}, right: map[int]bool{1: true}}
		for _, x := range s.Counters {
			most := ""
			if x.Top != "" {
				most = fmt.Sprintf("%s (%s)", clip(x.Top, 44), Count(int64(x.TopTotal)))
			}
			t.add(x.Name, Count(int64(x.Total)), most)
		}
		b.WriteString("\n" + t.String())
	}
	if len(s.Expectations) > 0 {
		b.WriteString("\n")
		for _, x := range s.Expectations {
			writeExpectation(&b, p, x)
		}
	}
	for i, x := range s.Warnings {
		if i == maxWarnings {
			fmt.Fprintf(&b, "    … and %d more warnings in the record's events\n", len(s.Warnings)-i)
			break
		}
		b.WriteString(p.warn("  ! ") + wrap(x, columns-4, "    ") + "\n")
	}
	for _, x := range s.Problems {
		b.WriteString(p.bad("  ✗ ") + wrap(x, columns-4, "    ") + "\n")
	}
	if s.Record != "" {
		fmt.Fprintf(&b, "\n  record  %s\n", s.Record)
		if s.Hash != "" {
			fmt.Fprintf(&b, "  hash    %s\n", s.Hash)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeExpectation(b *strings.Builder, p painter, x record.Expectation) {
	fmt.Fprintf(b, "  %s %s\n", p.mark(x.Passed), wrap(x.Expr, columns-4, "    "))
	if x.Passed {
		return
	}
	if x.Err != "" {
		fmt.Fprintf(b, "      %s\n", wrap(x.Err, columns-6, "      "))
	}
	for _, v := range x.Values {
		fmt.Fprintf(b, "      %s\n", wrap(v.Expr+" = "+v.Value, columns-6, "      "))
	}
}

// maxRecoveries is how many recoveries of a fault a terminal gets to see.
const maxRecoveries = 6

func writeRecoveries(b *strings.Builder, x record.Fault) {
	for i, r := range x.Recoveries {
		if i == maxRecoveries {
			fmt.Fprintf(b, "     … and more in the record's %s\n", record.RecoveriesFile)
			return
		}
		fmt.Fprintf(b, "     %s\n", wrap(x.Name+": "+r.String(), columns-5, "     "))
	}
}

func verified(x record.Workload) string {
	switch {
	case x.WrongBytes > 0:
		return Bytes(x.WrongBytes) + " WRONG"
	case x.VerifiedBytes == 0:
		return "–"
	case x.VerifiedBytes == x.Bytes:
		return "all"
	}
	return Bytes(x.VerifiedBytes)
}

// more is what only some workloads have: bandwidths as NCCL's tests reckon them, and what became of
// datagrams.
func more(x record.Workload) string {
	var parts []string
	if x.AlgBwBps > 0 {
		parts = append(parts, "algbw "+Rate(x.AlgBwBps), "busbw "+Rate(x.BusBwBps))
	}
	if x.Lost+x.Duplicates+x.OutOfOrder > 0 {
		parts = append(parts, Count(x.Lost)+" messages lost", Count(x.Duplicates)+" duplicated", Count(x.OutOfOrder)+" out of order")
	}
	return strings.Join(parts, ", ")
}

// short keeps a count within seven columns.
func short(n int64) string {
	if n < 100_000 {
		return Count(n)
	}
	return scale(float64(n), 1000, []string{"", "K", "M", "G", "T"})
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "NO"
}

// Wrap breaks text at blanks so that no line has more than n columns, if it can be; lines after the first begin with indent.
func Wrap(text string, n int, indent string) string { return wrap(text, n, indent) }

// wrap breaks text at blanks so that no line is longer than n, if it can be.
func wrap(text string, n int, indent string) string {
	var lines []string
	for para := range strings.SplitSeq(text, "\n") {
		line := ""
		for word := range strings.FieldsSeq(para) {
			if line != "" && width(line)+1+width(word) > n {
				lines = append(lines, line)
				line = word
				continue
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"+indent)
}

type painter bool

func (p painter) paint(code, s string) string {
	if !p {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p painter) good(s string) string { return p.paint("32", s) }
func (p painter) bad(s string) string  { return p.paint("1;31", s) }
func (p painter) warn(s string) string { return p.paint("33", s) }
func (p painter) bold(s string) string { return p.paint("1", s) }

func (p painter) mark(ok bool) string {
	if ok {
		return p.good("✓")
	}
	return p.bad("✗")
}
