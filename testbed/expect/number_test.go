package expect

import (
	"strings"
	"testing"
)

func TestANumberIsWhatTheExpressionComesTo(t *testing.T) {
	env, values := testEnv(t), testValues()
	for expr, want := range map[string]float64{
		`delta("out_of_seq_request", {"node": "h1"})`:                                      3,
		`workloads["all-pairs"].latency.p99`:                                               12_000,
		`double(workloads["all-pairs"].bytes) / 4.0`:                                       262_144,
		`workloads["all-pairs"].goodput_bps / workloads["all-pairs"].flows[0].goodput_bps`: 2,
	} {
		if got, err := env.Number(expr, values); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", expr, got, err, want)
		}
	}
}

func TestWhatIsNoNumberIsRefused(t *testing.T) {
	env, values := testEnv(t), testValues()
	for expr, want := range map[string]string{
		`workloads["ring"].errors == 2`:  "bool is no number",
		`workloads["rings"].errors`:      `there is no workload "rings"`,
		`delta("out_of_seq_requests")`:   "out_of_seq_requests",
		`delta("np_cnp_sent")`:           "no series of np_cnp_sent",
		`workloads["ring"].errors / 0 +`: "Syntax error",
	} {
		if _, err := env.Number(expr, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want something with %q", expr, err, want)
		}
	}
}
