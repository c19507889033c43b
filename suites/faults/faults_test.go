// Package faults_test applies every kind of fault that a backend claims, and proves by captures at both ends of the struck link that the packets
// meant were changed, in the way meant, and no others.
//
//	h1 ── leaf1 ──fault── leaf2 ── h2
//
// A row is one fault (or several on one link) in a small scenario. What a row expects is worked out here from what left the near end of the link:
// single packets by an oracle that shares no code with what chooses them (oracle_test.go), shares by bounds that a right implementation misses
// once in a thousand seeds (bounds_test.go), settings by what a capture or a counter shows while they last and when they are over.
//
// A kind, or a variant of one, that the backend claims and no row is about fails the suite; one that it refuses must be refused before anything is made.
package faults_test

import (
	"testing"

	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/testbed"
)

func TestMain(m *testing.M) {
	testbed.ProcessIfAsked()
	testleak.Main(m)
}

func TestFaults(t *testing.T) { bed.Suite(t, "faults") }
