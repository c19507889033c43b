package main

import (
	"os"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/testbed/guest"
)

func TestMain(m *testing.M) {
	guest.InitIfAsked() // the guests that these tests boot have this binary as their init
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(run(os.Args[1:])) // and as their rocebed, as keepers have it here
	}
	testleak.Main(m)
}
