package testbed

import (
	"strings"
	"testing"

	"github.com/rocebed/rocebed/testbed/metrics"
)

// incast is seven hosts that write to one, through a switch with settings of its own.
func incast(t *testing.T, settings string) func(metric string) float64 {
	t.Helper()
	return grown(t, `apiVersion: rocebed/v1
name: incast
seed: 3
topology: {star: {hosts: 8}, rate: 25Gbps}
workloads:
  - {name: in, kind: incast, from: ["h[2-8]"], to: [h1], size: 64KiB, messages: 60, depth: 8}
`+settings)
}

// grown runs a scenario in virtual time and gives the growth of its metrics.
func grown(t *testing.T, source string) func(metric string) float64 {
	t.Helper()
	out, r := runInSim(t, t.Context(), source, RunOptions{})
	if !out.Passed() {
		t.Fatalf("problems %q", out.Summary.Problems)
	}
	table, err := r.Table(metrics.Standard)
	if err != nil {
		t.Fatal(err)
	}
	return func(metric string) float64 {
		all, err := table.Select(metric, nil)
		if err != nil || len(all) == 0 {
			t.Fatalf("%s: %d series, %v", metric, len(all), err)
		}
		return table.Total(metric, nil)
	}
}

func TestIncastDropsOrPausesOrSlowsDownAsTheSettingsSay(t *testing.T) {
	const small, lossless = "switches: {buffer: 200KB}\n", "switches: {pfc: {priorities: [3]}, memory: 2MiB}\n"
	const marking = "switches: {pfc: {priorities: [3]}, memory: 2MiB, ecn: {kmin: 20KB, kmax: 80KB, pmax: 20%, priorities: [3]}}\nnics: {dcqcn: paper}\n"
	drops := incast(t, small)
	if drops("queue_drops") == 0 || drops("completer_retry_err") == 0 || drops("rx_prio_pause") > 0 {
		t.Errorf("small buffers: %v drops, %v retries, %v pauses", drops("queue_drops"), drops("completer_retry_err"), drops("rx_prio_pause"))
	}
	pauses := incast(t, lossless)
	if pauses("port_drops") > 0 || pauses("completer_retry_err") > 0 || pauses("rx_prio_pause") == 0 {
		t.Errorf("lossless: %v drops, %v retries, %v pauses", pauses("port_drops"), pauses("completer_retry_err"), pauses("rx_prio_pause"))
	}
	if pauses("rx_prio_pause") != pauses("tx_prio_pause") {
		t.Errorf("%v pause frames were sent, %v received", pauses("tx_prio_pause"), pauses("rx_prio_pause"))
	}
	slows := incast(t, marking)
	if slows("ecn_marked") == 0 || slows("np_cnp_sent") == 0 || slows("rp_cnp_handled") != slows("np_cnp_sent") || slows("port_drops") > 0 {
		t.Errorf("DCQCN: %v marks, %v CNPs sent, %v handled, %v drops", slows("ecn_marked"), slows("np_cnp_sent"), slows("rp_cnp_handled"), slows("port_drops"))
	}
	if slows("rx_prio_pause_duration") >= pauses("rx_prio_pause_duration")/2 {
		t.Errorf("DCQCN leaves %v ns of pauses of %v", slows("rx_prio_pause_duration"), pauses("rx_prio_pause_duration"))
	}
}

func TestSprayingOverUnequalPathsReordersWhichGoBackNPaysForAndSelectiveRepeatLessSo(t *testing.T) {
	const across = `apiVersion: rocebed/v1
name: across
topology:
  spine-leaf: {spines: 4, leaves: 2, hosts_per_leaf: 4}
  rate: 25Gbps
  override: [{link: "leaf1 -- spine1", delay: 9us}]
switches: {routing: spray}
workloads:
  - {name: cross, kind: write, from: [h1], to: [h5], size: 64KiB, messages: 30}
`
	back := grown(t, across+"nics: {recovery: go-back-n}\n")
	selective := grown(t, across+"nics: {recovery: selective-repeat}\n")
	if back("out_of_seq_request") == 0 || back("retransmitted_packets") == 0 {
		t.Errorf("go-back-n under spraying: %v out of sequence, %v sent again", back("out_of_seq_request"), back("retransmitted_packets"))
	}
	if got := selective("retransmitted_packets"); got >= back("retransmitted_packets")/4 {
		t.Errorf("selective repeat sent %v packets again, go-back-n %v", got, back("retransmitted_packets"))
	}
}

func TestAnOverrideHoldsForItsNodesAlone(t *testing.T) {
	s := grown(t, `apiVersion: rocebed/v1
name: one
topology: {star: {hosts: 4}, rate: 25Gbps}
switches: {ecn: {kmin: 10KB, kmax: 20KB, pmax: 100%}}
nics:
  dcqcn: paper
  override:
    - {node: h2, dcqcn: "off"}
workloads:
  - {name: in, kind: incast, from: ["h[234]"], to: [h1], size: 64KiB, messages: 20}
`)
	if s("rp_cnp_ignored") == 0 || s("rp_cnp_handled") == 0 {
		t.Errorf("%v CNPs ignored, %v handled", s("rp_cnp_ignored"), s("rp_cnp_handled"))
	}
}

func TestWhatVirtualTimeHasNotIsRefusedAtItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"nics: {profile: connectx9}":                                                              `no RNIC profile "connectx9"`,
		"nics: {recovery: go-forth}":                                                              "no way to recover",
		"switches: {ecn: {marker: red, kmin: 1KB, kmax: 2KB, pmax: 1%}}":                          "on the kernel backend",
		"switches: {memory: 100KB, pfc: {priorities: [3], headroom: 9MB}}":                        "buffer",
		"switches: {queues: [{priority: 3, ecn: {marker: red, kmin: 1KB, kmax: 2KB, pmax: 1%}}]}": "on the kernel backend",
		// What would change nothing is refused as well.
		"switches: {alpha: 1/8}":                            "give memory or pfc",
		"switches: {reserved: 20KB}":                        "give memory or pfc",
		"switches: {queues: [{priority: 3, alpha: 8}]}":     "give memory or pfc",
		"switches: {override: [{node: leaf1, alpha: 1}]}":   "leaf1: shares are of a memory",
		"switches: {memory: 2MiB, watchdog: {detect: 1ms}}": "give pfc, or leave it out",
	} {
		s, err := Parse("t.yaml", []byte("apiVersion: rocebed/v1\nname: t\ntopology: {star: {hosts: 2}}\n"+text+"\n"))
		if err == nil {
			_, err = Run(t.Context(), s, RunOptions{Backend: Sim, Out: t.TempDir() + "/r"})
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "t.yaml:4:") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
