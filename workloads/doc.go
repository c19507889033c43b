// Package workloads is what runs on a fabric: programs of verbs operations, generators of
// them, and the engine that drives them.
//
// A Spec comes in from a scenario file; Check refuses what makes no sense on a topology,
// before anything is created; Engine runs the specs against verbs.Device on each host's
// loop; a Result a workload goes out, and events to an Observer on the way. Payloads come
// from the seed and are checked at the destination, byte by byte: an outcome that verbs
// semantics forbid for the QP type and completion status is a Violation.
//
// The package never learns which backend it runs on, touches no operating system, reads no
// wall clock, and lets nothing depend on map order or on which goroutine ran first. All
// times are fabric time.
package workloads
