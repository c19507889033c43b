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

	"github.com/rocebed/rocebed/suites/agreement"
	"github.com/rocebed/rocebed/testbed"
)

func main() {
	testbed.ProcessIfAsked()
	backend := flag.String("backend", "sim", "what to run on: sim, soft, kernel")
	dilation := flag.Uint("dilation", 256, "of the fabrics in real time")
	scenes := flag.String("scenes", "", "only scenes whose names contain this")
	modes := flag.String("modes", "", "only these modes, with commas between")
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
			f, err := s.Measure(ctx, testbed.Backend(*backend), m, uint32(*dilation), span)
			if err != nil {
				fmt.Fprintln(os.Stderr, "measure:", err)
				code = 1
				continue
			}
			line, _ := json.Marshal(f) // numbers and texts
			fmt.Printf("%s\n", line)
		}
	}
	stop()
	os.Exit(code)
}
