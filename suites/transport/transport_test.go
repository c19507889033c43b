// Package transport_test is what the RC transport must do across a fabric on
// which one thing at a time goes wrong: data intact, the right counters moved, and errors only
// when the retry budget is used up.
//
//	h1 ── leaf1 ──────────── leaf2 ── h2
//	              faults
//
// Faults strike the link between the switches: a host's own link never drops, so no work
// request fails for a local reason.
package transport_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/testbed"
)

func TestMain(m *testing.M) {
	testbed.ProcessIfAsked()
	testleak.Main(m)
}

func TestTransport(t *testing.T) { bed.Suite(t, "transport") }

// scenario is the fabric above, which carries about 39 Mb/s of wall time, and the sections given.
func scenario(sections ...string) string {
	return `apiVersion: rocebed/v1
name: transport
seed: 11
dilation: 256
topology:
  dumbbell: {left: 1, right: 1}
  rate: 10Gbps
` + strings.Join(sections, "")
}

// each runs every operation, one after another, each on a queue pair of its own.
const each = `workloads:
  - {name: write,  kind: write,  from: [h1], to: [h2], size: 64KiB, messages: 16}
  - {name: read,   kind: read,   from: [h1], to: [h2], size: 64KiB, messages: 16, after: write}
  - {name: send,   kind: send,   from: [h1], to: [h2], size: 64KiB, messages: 16, after: read}
  - {name: atomic, kind: atomic, from: [h1], to: [h2], messages: 200, after: send}
`

var operations = []string{"write", "read", "send", "atomic"}

// fault is one fault between the switches for the whole run, in flow style.
func fault(keys string) string {
	return fmt.Sprintf("faults:\n  - {name: it, at: [leaf1-leaf2], %s}\n", keys)
}
