// Package dcqcn is DCQCN as three pure machines: the reaction point of a sender (RP), the
// notification point of a receiver (NP) and the marking curve of a switch (CP).
//
// Times come in as arguments and decisions go out as results: the package has no clock, starts
// nothing, sends nothing and touches no operating system. Times given to one machine never go
// back. A machine belongs to one loop; nothing here is safe for use from several goroutines.
//
//	sender                       switch                    receiver
//	RP ── paced data ──────────▶ CP.Mark(queue) ─────────▶ NP.OnMarked
//	RP.OnCNP ◀──────────────────────────── CNP ─────────── at most one per interval and flow
//
// Rates are whole bits per second and α is a fixed-point number, so a run gives the same result
// on every processor. What a machine does depends on its events alone, never on how often it
// was asked: an owner may arm a timer for RP.NextTimer, or let everything be caught up the next
// time that it wants the rate. A flow at line rate, or with nothing to send, costs nothing.
//
// Params has every knob under its mlx5 name; Profiles are published sets of them, each with
// its source. docs/dcqcn.md has the formulas, the sources, and where these differ.
package dcqcn
