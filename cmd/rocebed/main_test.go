package main

import (
	"testing"

	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/testbed/guest"
)

func TestMain(m *testing.M) {
	guest.InitIfAsked() // the guests that these tests boot have this binary as their init
	testleak.Main(m)
}
