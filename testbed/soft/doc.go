// Package soft brings fabrics of software nodes up on this machine: hosts whose RNICs, and switches
// whose silicon, are rocebed's own, on real links between network namespaces.
//
// A node is one thread with one loop: it waits for its sockets and its timers at once, takes frames out of
// the rings that the kernel shares with it, runs the node's state machines on them, and hands what is due to the
// kernel, many frames a call. On a host, RoCE and pause frames go to the RNICs; all else is for the
// namespace's own stack, so that ping, iperf3 and TCP work as on any machine.
//
// What a state machine sends at a time of the fabric's reaches its socket at that time, dilated, plus the
// link's delay; how late it was is measured. Nothing is dropped unseen.
package soft
