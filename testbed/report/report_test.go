package report

import (
	"encoding/xml"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
)

func summary() *record.Summary {
	return &record.Summary{
		Name: "quickstart", Verdict: record.Fail, Backend: "kernel", Guest: true, Seed: 42, Dilation: 1024, Wall: 21300 * time.Millisecond,
		Record: "out/quickstart", Hash: strings.Repeat("a", 64),
		Workloads: []record.Workload{
			{Name: "all-pairs-with-a-rather-long-name", Kind: "all-pairs", Passed: true, Bytes: 123 << 20, VerifiedBytes: 123 << 20, GoodputBps: 98_700_000_000,
				Latency: record.Latency{P50: 12300, P99: 1999 * time.Microsecond}, Messages: 123456, Retries: 1234567},
			{Name: "ring", Kind: "all-reduce", AlgBwBps: 2_720_000_000, BusBwBps: 4_760_000_000, Lost: 1181, Bytes: 1 << 20, VerifiedBytes: 1<<20 - 5, WrongBytes: 5, Errors: 1, Problems: []string{"h3:gpu0: <wrong>"}},
		},
		Faults:   []record.Fault{{Name: "lossy", Kind: "loss", At: []string{"leaf1:*", "leaf2:*", "spine1:*", "spine2:*"}, Hits: 12345, Strikes: 1, Verified: true, Healed: true}},
		Counters: []record.Counter{{Name: "out_of_seq_request", Total: 12, Top: "out_of_seq_request{node=h1,port=eth0}", TopTotal: 7}},
		Expectations: []record.Expectation{
			{Expr: `workloads["all-pairs"].errors == 0`, Passed: true},
			{Expr: `delta("out_of_seq_request", {"node": "h1"}) == 0 && workloads["ring"].verified_bytes == workloads["ring"].bytes`,
				Values: []record.Value{{Expr: `delta("out_of_seq_request", {"node": "h1"})`, Value: "7"}}},
		},
		Problems: []string{"ring: 5 bytes arrived wrong at h3, and this sentence is long enough that it has to be broken somewhere before the hundredth column"},
	}
}

func TestTerminalTablesFitAHundredColumns(t *testing.T) {
	var b strings.Builder
	if err := Terminal(&b, summary(), true); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := width(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"FAIL", "98.7 Gbps", "5 B WRONG", "12,345", `delta("out_of_seq_request", {"node": "h1"}) = 7`, "in the guest", "1.23 M",
		"ring: algbw 2.72 Gbps, busbw 4.76 Gbps, 1,181 messages lost"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestJUnitCountsWhatFailed(t *testing.T) {
	b, err := JUnit(summary())
	if err != nil {
		t.Fatal(err)
	}
	var s junitSuite
	if err := xml.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	if s.Tests != 6 || s.Failures != 3 {
		t.Errorf("%d tests and %d failures, want 6 and 3\n%s", s.Tests, s.Failures, b)
	}
}

func TestThePageHoldsEverythingAndEscapesIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	w, err := record.Create(dir, record.Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	w.Event(record.Event{Source: "fault", Name: "lossy", What: "applied"})
	for i, phase := range []metrics.Phase{metrics.Before, metrics.During, metrics.After} {
		w.Reading(metrics.Standard, metrics.Reading{Phase: phase, At: time.Duration(i), Samples: []metrics.Sample{{Name: "sent_pkts", Labels: []string{"h1", "eth0"}, Value: float64(i * 500)}}})
	}
	if _, err := w.Finish(record.Manifest{}); err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := HTML(summary(), r, metrics.Standard)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<b class=\"fail\">", "98.7 Gbps", "busbw 4.76 Gbps", "<td>yes<td>yes", "h3:gpu0: &lt;wrong&gt;", "applied", "0 … 1,000 packets", "0.0,60.0 150.0,30.0 300.0,0.0"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if strings.Contains(string(b), "http") {
		t.Error("the page reaches for the network")
	}
}

func TestNumbersReadWell(t *testing.T) {
	for got, want := range map[string]string{
		Rate(0): "0 bps", Rate(98_700_000_000): "98.7 Gbps", Rate(999_999): "1.00 Mbps", Bytes(65536): "64.0 KiB", Bytes(512): "512 B",
		Count(-1234567): "-1,234,567", Count(12): "12", Span(12300): "12.3 µs", Span(21300 * time.Millisecond): "21.3 s", Span(0): "–",
		Span(1500 * time.Second): "1500 s", Span(999_700 * time.Microsecond): "1.00 s", Span(-2 * time.Second): "-2.00 s", Span(100 * time.Second): "100 s",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
