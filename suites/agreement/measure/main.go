// Command measure runs the agreement's scenes on one backend of this machine, and prints their figures as JSON, a line each.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/rocebed/rocebed/suites/agreement"
	"github.com/rocebed/rocebed/testbed"
)

func main() {
	testbed.ProcessIfAsked()
	backend := flag.String("backend", "sim", "what to run on: sim, soft, kernel")
	dilation := flag.Uint("dilation", 256, "of the fabrics in real time")
	scenes := flag.String("scenes", "", "only scenes whose names contain this")
	modes := flag.String("modes", "", "only these modes, with commas between")
	seed := flag.Uint64("seed", 1, "of what is random")
	again := flag.Int("again", 1, "how often to run a scene again, at twice the dilation, where the machine did not keep up")
	short := flag.Bool("short", false, "the span of an ordinary test")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	span := agreement.Full
	if *short {
		span = agreement.Short
	}
	code := 0
	for _, s := range agreement.Scenes() {
		if !strings.Contains(s.Name, *scenes) {
			continue
		}
		for _, m := range agreement.Modes() {
			if *modes != "" && !strings.Contains(","+*modes+",", ","+string(m)+",") {
				continue
			}
			f, err := s.Measure(ctx, testbed.Backend(*backend), m, agreement.How{Dilation: uint32(*dilation), Again: *again, Seed: *seed, Span: span})
			if err != nil {
				fmt.Fprintf(os.Stderr, "measure: %s, %s on %s: %v\n", s.Name, m, *backend, err)
				code = 1
				continue
			}
			fmt.Fprintf(os.Stderr, "measure: %s, %s on %s: %v of wall time at 1:%d\n", s.Name, m, *backend, f.Wall.Round(100*time.Millisecond), f.Dilation)
			for _, p := range f.Problems {
				fmt.Fprintln(os.Stderr, "measure:  ", p)
			}
			line, _ := json.Marshal(f) // numbers and texts
			fmt.Printf("%s\n", line)
		}
	}
	stop()
	os.Exit(code)
}
