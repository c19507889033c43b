// Package soak makes random scenarios and holds each run of one in virtual time to what is true of any: topologies,
// NICs, switches, workloads and faults drawn from a seed, every byte checked by the workloads, every packet
// accounted for, the same record twice.
//
// Scenario writes a scenario for a seed: text that anybody can run with `rocebed run --backend sim`. Judge says what of
// an outcome no fault and no setting excuses. `make soak` makes thousands of them, `make test` 200; a violation
// names its seed and shows its scenario.
package soak
