// Package testbed is the harness: scenario in, fabric up, run, record, verdict, fabric down.
//
// Load reads a scenario file and checks everything in it that needs no machine; Run executes
// it on a backend and leaves a record; Up brings a fabric up without running anything. Backends
// are registered by the files that build on the systems where they work, so that the package
// itself builds everywhere. It prints nothing: what a run does comes out through Progress, what
// it came to through Outcome and the record.
package testbed
