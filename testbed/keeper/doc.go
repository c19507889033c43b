// Package keeper is the resident process that holds a fabric between commands: its lock, its
// namespaces, its loops, or the guest that they live in. It says what there is, lets programs
// run on the nodes, and takes everything down when it is told to or ends.
//
// A keeper listens on a unix socket in its testbed's folder, which only root can reach. A
// connection carries one request and its answer, as lines of JSON: any number of steps, then a
// result or an error. A program on a node is started by the process that asked for it, which
// enters the node's namespace itself, so that terminal, signals and exit code are its own; in a
// guest, a second socket carries the guest's SSH connection.
//
// The package never learns how a fabric is brought up: whoever starts a keeper gives it a
// function that does (see [Serve]). It imports fabric, linux and guest.
package keeper
