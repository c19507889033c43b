// Package packet names single packets and says what is done to them: the sharpest of faults.
//
// An Event is what a file says: which packets (by queue pair, PSN, iteration, class, …) and what
// to do. Compile makes a Program of events, whose rules are flat: fixed-size, with masks in place of lists.
// A Matcher runs a Program over the facts of packets at one place, one direction of a link, and gives a
// Verdict for each; Program.Encode writes the rules as bytes for a program that does the same in the
// kernel (flat.go has the layout and the semantics in full).
//
// The package is pure: facts in, verdicts out, nothing allocated per packet. Who has the packets
// does what the verdict says.
package packet
