// Package silicon is what the soft and sim backends share: software RNICs and switches made from a
// plan and its settings, what goes wrong on the wires between them, and readings of both.
//
// A backend lends each node a loop, a pool of frames and, for each port, the wire that carries its frames to
// the port across the link. Make puts devices and switches on them, each port behind a Wire of
// its own, where the Injector's faults strike. All that belongs to a node is touched on its loop only.
//
// The package knows no socket and no clock; whether frames are structs or bytes is the backend's choice.
package silicon
