package expect

import (
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
)

func testEnv(t *testing.T) *Env {
	t.Helper()
	e, err := NewEnv(Names{
		Workloads: []string{"all-pairs", "ring"},
		Faults:    []string{"lossy"},
		Nodes:     []string{"h1", "h2", "leaf1"},
		Metrics:   metrics.Standard,
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func testValues() Values {
	table := metrics.NewTable(metrics.Standard)
	add := func(phase metrics.Phase, h1, h2, backlog float64) {
		table.Add(metrics.Reading{Phase: phase, Samples: []metrics.Sample{
			{Name: "out_of_seq_request", Labels: []string{"h1", "eth0"}, Value: h1},
			{Name: "out_of_seq_request", Labels: []string{"h2", "eth0"}, Value: h2},
			{Name: "qdisc_backlog_bytes", Labels: []string{"leaf1", "eth0", "shape"}, Value: backlog},
		}})
	}
	add(metrics.Before, 5, 1, 0)
	add(metrics.During, 6, 4, 9000)
	add(metrics.After, 8, 8, 300)
	return Values{
		Workloads: map[string]record.Workload{
			"all-pairs": {Bytes: 1 << 20, VerifiedBytes: 1 << 20, GoodputBps: 2e9, Passed: true,
				Latency: record.Latency{P99: 12 * time.Microsecond}, Flows: []record.Flow{{Src: "h1", Dst: "h2", GoodputBps: 1e9}, {Src: "h2", Dst: "h1", GoodputBps: 3e9}}},
			"ring": {Errors: 2, Statuses: []string{"RETRY_EXC_ERR"}},
		},
		Faults:  map[string]record.Fault{"lossy": {Hits: 7, Healed: true}},
		Metrics: table,
	}
}

func TestExpectationsReadResultsFaultsAndMetrics(t *testing.T) {
	env, values := testEnv(t), testValues()
	for expr, want := range map[string]bool{
		`workloads["all-pairs"].verified_bytes == workloads["all-pairs"].bytes`:  true,
		`workloads["all-pairs"].goodput_bps > rate("1.5Gbps")`:                   true,
		`workloads["all-pairs"].goodput_bps > 2.5e9`:                             false,
		`workloads["all-pairs"].latency.p99 < duration("20us")`:                  true,
		`workloads["all-pairs"].latency.p99 < duration("2us")`:                   false,
		`workloads["all-pairs"].flows.all(f, f.goodput_bps >= rate("1Gbps"))`:    true,
		`workloads["all-pairs"].bytes == bytesize("1MiB")`:                       true,
		`workloads.all(w, workloads[w].errors == 0)`:                             false,
		`"RETRY_EXC_ERR" in workloads["ring"].statuses`:                          true,
		`faults["lossy"].hits > 0 && faults["lossy"].healed`:                     true,
		`delta("out_of_seq_request") == 10`:                                      true,
		`delta("out_of_seq_request", {"node": "h1"}) == 3`:                       true,
		`delta("out_of_seq_request", {"node": "h*", "port": "eth0"}) == 10`:      true,
		`before("out_of_seq_request") == 6 && after("out_of_seq_request") == 16`: true,
		`max("qdisc_backlog_bytes") < bytesize("10KB")`:                          true,
		`mean("qdisc_backlog_bytes") > 3000`:                                     true,
		`double(delta("out_of_seq_request")) / 100.0 < share("1%")`:              false,
		`min("qdisc_backlog_bytes", {"slot": "shape"}) == 0`:                     true,
	} {
		p, problems := env.Compile(expr)
		if problems != nil {
			t.Errorf("%s: %v", expr, problems)
			continue
		}
		if v := p.Eval(values); v.Passed != want || v.Err != "" {
			t.Errorf("want %v: %s", want, v)
		}
	}
}

func TestAFailureShowsEveryValueItSaw(t *testing.T) {
	p, problems := testEnv(t).Compile(`delta("out_of_seq_request", {"node": "h1"}) == 0 && workloads["ring"].errors < 1 && workloads["all-pairs"].latency.p99 < duration("2us")`)
	if problems != nil {
		t.Fatal(problems)
	}
	v := p.Eval(testValues())
	for _, want := range []string{`delta("out_of_seq_request", {"node": "h1"}) = 3`, `workloads["ring"].errors = 2`, `workloads["all-pairs"].latency.p99 = 12µs`} {
		if !strings.Contains(v.String(), want) {
			t.Errorf("no %q in\n%s", want, v)
		}
	}
}

func TestAFailureOverAllWorkloadsShowsEachOfThem(t *testing.T) {
	p, problems := testEnv(t).Compile(`workloads.all(w, workloads[w].errors == 0 && workloads[w].latency.p99 < duration("1s")) && faults.exists(f, faults[f].hits > 100) && delta("out_of_seq_request") > 0`)
	if problems != nil {
		t.Fatal(problems)
	}
	v := p.Eval(testValues())
	want := `workloads["all-pairs"].errors = 0, workloads["ring"].errors = 2, workloads["all-pairs"].latency.p99 = 12µs, ` +
		`workloads["ring"].latency.p99 = 0s, faults["lossy"].hits = 7, delta("out_of_seq_request") = 10`
	var got []string
	for _, x := range v.Values {
		got = append(got, x.Expr+" = "+x.Value)
	}
	if v.Passed || strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
}

func TestAMetricThatNobodyMeasuredHasNoValue(t *testing.T) {
	p, problems := testEnv(t).Compile(`delta("send_err") == 0`)
	if problems != nil {
		t.Fatal(problems)
	}
	if v := p.Eval(testValues()); v.Passed || !strings.Contains(v.Err, "no series of send_err") {
		t.Errorf("got %s", v)
	}
}

func TestACounterOfOtherNICsThatNobodyMeasuredNamesTheOneThatEveryBackendHas(t *testing.T) {
	p, problems := testEnv(t).Compile(`delta("packet_seq_err") == 0`)
	if problems != nil {
		t.Fatal(problems)
	}
	if v := p.Eval(testValues()); v.Passed || !strings.Contains(v.Err, "every backend has rcvd_seq_err)") {
		t.Errorf("got %s", v)
	}
}

func TestACounterThatWasNotReadAfterTheRunHasNoGrowth(t *testing.T) {
	v := testValues()
	v.Metrics.Add(metrics.Reading{Phase: metrics.Before, Samples: []metrics.Sample{{Name: "send_err", Labels: []string{"h1", "eth0"}, Value: 3}}})
	for _, expr := range []string{`delta("send_err") <= 0`, `after("send_err") == 0`} {
		p, problems := testEnv(t).Compile(expr)
		if problems != nil {
			t.Fatal(problems)
		}
		if v := p.Eval(v); v.Passed || !strings.Contains(v.Err, "send_err of h1:eth0 was not read after the run") {
			t.Errorf("got %s", v)
		}
	}
}

func TestWhatMakesNoSenseIsRefusedAtItsPlace(t *testing.T) {
	env := testEnv(t)
	for expr, want := range map[string]Problem{
		`workloads["ring"].verifed_bytes == 0`:        {1, 18, "undefined field 'verifed_bytes'", "verified_bytes"},
		`workloads["rnig"].errors == 0`:               {1, 11, `there is no workload "rnig"`, "ring"},
		`faults["losy"].healed`:                       {1, 8, `there is no fault "losy"`, "lossy"},
		`delta("out_of_seq_requests") == 0`:           {1, 7, `there is no metric "out_of_seq_requests"`, "out_of_seq_request"},
		`delta("port_xmit_data") == 0`:                {1, 7, "the nearest is sent_bytes, in bytes", "sent_bytes"},
		`delta("roce_adp_retrans") == 0`:              {1, 7, "no NIC here retransmits adaptively", ""},
		`delta("sent_pkts", {"nod": "h1"}) == 0`:      {1, 21, `no label "nod"`, "node"},
		`delta("sent_pkts", {"node": "h3"}) == 0`:     {1, 29, `no node "h3"`, "h1"},
		`delta("qdisc_backlog_bytes") == 0`:           {1, 7, "is a gauge", ""},
		`workloads["ring"].errors`:                    {1, 1, "must be true or false, this is int", ""},
		`workloads["ring"].goodput_bps > rate("1Gb")`: {1, 38, `"1Gb" needs a number and a unit`, ""},
		`workload["ring"].errors == 0`:                {1, 1, "undeclared reference to 'workload'", "workloads"},
		`workloads["ring"].errors == `:                {1, 29, "Syntax error", ""},
		`workloads["ring"].latency.p99 < 3`:           {1, 31, "no matching overload", ""},
		`delta(workloads["ring"].statuses[0]) > 0`:    {1, 33, "literal string", ""},
	} {
		_, problems := env.Compile(expr)
		if len(problems) != 1 {
			t.Errorf("%s: want one problem, got %v", expr, problems)
			continue
		}
		got := problems[0]
		if got.Line != want.Line || got.Column != want.Column || !strings.Contains(got.Text, want.Text) || got.Suggestion != want.Suggestion {
			t.Errorf("%s:\n got %+v\nwant %+v", expr, got, want)
		}
	}
}

func TestAllProblemsOfAnExpressionAreSaidAtOnce(t *testing.T) {
	_, problems := testEnv(t).Compile(`delta("a_metric") == 0 && workloads["x"].errors == 0 && faults["y"].healed`)
	if len(problems) != 3 {
		t.Errorf("got %v", problems)
	}
}

func TestAnExpressionThatTakesForEverIsGivenUp(t *testing.T) {
	over, every := "true", "[1,2,3,4,5,6,7,8,9,10]"
	for _, v := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} { // 10^10 rounds
		over = every + ".all(" + v + ", " + over + ")"
	}
	defer func(d time.Duration) { patience = d }(patience)
	patience = 10 * time.Millisecond
	p, problems := testEnv(t).Compile(over)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if v := p.Eval(testValues()); v.Passed || !strings.Contains(v.Err, "given up after 10ms") {
		t.Errorf("passed %v, error %q", v.Passed, v.Err)
	}
}
